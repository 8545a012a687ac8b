// hpo-replay EVENTS [--least] < TARGETS: recorded allocation events (recorded_events.h) for other
// GPUs and other settings of the caching allocator. python/dryrun/hpo_dryrun/replay.py runs it.
//
// A target is one line of standard input, ten numbers that are separated by spaces:
//   USABLE     bytes that the program may hold of the GPU, without contexts and other processes
//   TOTAL      bytes of the GPU
//   FRACTION   share of TOTAL that the program allows itself; -: as it was recorded
//   EXPANDABLE 1 for expandable_segments, else 0
//   SPLIT      max_split_size_mb, in bytes; 0: none
//   COLLECTION garbage_collection_threshold; 0: none
//   ROUNDUP    roundup_power2_divisions; 0: none
//   CAPABILITY MULTIPROCESSORS THREADS   the GPU's shape (recorded_events.h); 0 0 0: as recorded
// For each target and GPU of the program, one line of JSON on standard output; sizes are in bytes,
// out_of_memory_event and unknown_from_event (event_replay.h) are null where there is none;
// unknown_sizes is num_unknown_sizes (other_gpu.h), least_bytes is LeastMemory (least_memory.h):
// null without --least, as it takes some ten replays. Exit status 2, with one line on standard
// error, where the input is not as described.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "memory/replay/event_replay.h"
#include "memory/replay/least_memory.h"
#include "memory/replay/line_words.h"
#include "memory/replay/other_gpu.h"
#include "memory/replay/recorded_events.h"

namespace hpo::memory {
namespace {

struct Target {
  AllocatorOptions options;        // without the limit
  std::optional<double> fraction;  // none: as recorded
  GpuShape gpu;
};

std::optional<std::string> ReadAll(int descriptor) {
  std::string text;
  char buffer[1 << 16];
  ssize_t size = 0;
  while ((size = read(descriptor, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(size));
  }
  if (size < 0) return std::nullopt;
  return text;
}

std::optional<std::string> ReadFile(const char* path) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  std::optional<std::string> text = ReadAll(descriptor);
  close(descriptor);
  return text;
}

std::optional<Target> ReadTarget(std::string_view line) {
  Target target;
  AllocatorOptions& options = target.options;
  int64_t split = 0;
  int64_t expandable = 0;
  if (!TakeNumber(line, options.card.left.count)) return std::nullopt;
  if (!TakeNumber(line, options.card.total.count)) return std::nullopt;
  if (line.substr(0, 2) == "- ") {
    line.remove_prefix(2);
  } else if (!TakeFraction(line, target.fraction.emplace())) {
    return std::nullopt;
  }
  if (!TakeNumber(line, expandable) || !TakeNumber(line, split) ||
      !TakeFraction(line, options.garbage_collection_threshold) ||
      !TakeNumber(line, options.roundup_power2_divisions) ||
      !TakeNumber(line, target.gpu.capability) || !TakeNumber(line, target.gpu.multiprocessors) ||
      !TakeNumber(line, target.gpu.threads_per_multiprocessor) ||
      std::max(target.gpu.multiprocessors, target.gpu.threads_per_multiprocessor) > kLargestCount) {
    return std::nullopt;
  }
  options.expandable_segments = expandable != 0;
  if (split > 0) options.max_split_bytes = split;
  if (!InvalidOption(options).empty()) return std::nullopt;
  return target;
}

template <typename Number>
std::string NumberOrNull(const std::optional<Number>& number) {
  return number.has_value() ? std::to_string(*number) : "null";
}

void Replay(const RecordedDevice& device, const Target& target, int64_t number, bool wants_least) {
  AllocatorOptions options = target.options;
  const double fraction = target.fraction.value_or(device.memory_fraction);
  if (fraction < 1.0) {
    options.limit.count =
        static_cast<int64_t>(fraction * static_cast<double>(options.card.total.count));
  }
  const RecordingOnGpu recording = OnGpu(device, target.gpu);
  const EventReplay result = ReplayEvents(recording.device, options);
  std::optional<int64_t> least;
  if (wants_least) {
    const int64_t beyond = std::max<int64_t>(0, (options.card.total - options.card.left).count);
    least = LeastMemory(recording.device, options, fraction, beyond);
  }
  const auto sized = [](Bytes bytes) { return static_cast<long long>(bytes.count); };
  std::printf(
      "{\"target\": %lld, \"device\": %lld, \"allocated_peak\": %lld, \"reserved_peak\": %lld, "
      "\"retries\": %lld, \"out_of_memory_event\": %s, \"unknown_from_event\": %s, "
      "\"unknown_sizes\": %lld, \"least_bytes\": %s}\n",
      static_cast<long long>(number), static_cast<long long>(device.number),
      sized(result.stats.allocated_peak), sized(result.stats.reserved_peak),
      static_cast<long long>(result.stats.num_retries),
      NumberOrNull(result.out_of_memory_event).c_str(),
      NumberOrNull(result.unknown_from_event).c_str(),
      static_cast<long long>(recording.num_unknown_sizes), NumberOrNull(least).c_str());
}

int Fail(const std::string& complaint) {
  std::fprintf(stderr, "hpo-replay: %s\n", complaint.c_str());
  return 2;
}

int ReplayAll(const std::string& path, bool wants_least) {
  const std::optional<std::string> text = ReadFile(path.c_str());
  if (!text.has_value()) return Fail(path + ": expected a recording, and it cannot be read");
  const auto read = ReadRecordedEvents(*text);
  if (const auto* const complaint = std::get_if<std::string>(&read)) {
    return Fail(path + ": " + *complaint);
  }
  const std::optional<std::string> targets = ReadAll(STDIN_FILENO);
  if (!targets.has_value()) return Fail("standard input: it cannot be read");
  std::string_view rest = *targets;
  for (int64_t number = 0; !rest.empty(); ++number) {
    const std::string_view line = TakeUntil('\n', rest);
    const std::optional<Target> target = ReadTarget(line);
    if (!target.has_value()) {
      return Fail("target " + std::to_string(number) +
                  ": expected USABLE TOTAL FRACTION EXPANDABLE SPLIT COLLECTION ROUNDUP CAPABILITY "
                  "MULTIPROCESSORS THREADS, got '" +
                  std::string(line) + "'");
    }
    for (const RecordedDevice& device : std::get<std::vector<RecordedDevice>>(read)) {
      Replay(device, *target, number, wants_least);
    }
  }
  return 0;
}

}  // namespace
}  // namespace hpo::memory

int main(int argc, char** argv) {
  const bool wants_least = argc == 3 && std::string_view(argv[2]) == "--least";
  if (argc == 2 || wants_least) return hpo::memory::ReplayAll(argv[1], wants_least);
  std::fputs("usage: hpo-replay EVENTS [--least] < TARGETS\n", stderr);
  return 2;
}
