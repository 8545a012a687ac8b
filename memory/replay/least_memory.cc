#include "memory/replay/least_memory.h"

#include <algorithm>

#include "memory/replay/event_replay.h"

namespace hpo::memory {
namespace {

// Of what the allocator takes of the GPU: small segments, and pages of expandable ones.
constexpr int64_t kUnit = int64_t{2} << 20;
// Sizes between the peaks that are tried from the top.
constexpr int64_t kNumTried = 32;

bool RunsThrough(const EventReplay& replay) {
  return !replay.out_of_memory_event.has_value() && !replay.unknown_from_event.has_value();
}

EventReplay ReplayWith(int64_t usable, const RecordedDevice& device, AllocatorOptions options,
                       double fraction, int64_t beyond) {
  options.card = {.total = Bytes{usable + beyond}, .left = Bytes{usable}};
  options.limit = Bytes{AllocatorOptions::kUnlimited};
  if (fraction < 1.0) {
    options.limit.count = static_cast<int64_t>(fraction * static_cast<double>(usable + beyond));
  }
  return ReplayEvents(device, options);
}

}  // namespace

std::optional<int64_t> LeastMemory(const RecordedDevice& device, const AllocatorOptions& options,
                                   double fraction, int64_t beyond) {
  if (fraction <= 0.0) return std::nullopt;
  const EventReplay ample = ReplayWith(kLargestRequest, device, options, fraction, beyond);
  if (!RunsThrough(ample)) return std::nullopt;
  const auto fits = [&](int64_t units) {
    return RunsThrough(ReplayWith(units * kUnit, device, options, fraction, beyond));
  };
  // With the reserved peak it runs as it did, unless the fraction is below one.
  const int64_t allocated = ample.stats.allocated_peak.count;
  const auto reserved = static_cast<int64_t>(static_cast<double>(ample.stats.reserved_peak.count) /
                                             std::min(fraction, 1.0));
  int64_t too_few = allocated / kUnit - 1;
  int64_t enough = reserved / kUnit + 1;
  if (!fits(enough)) return std::nullopt;
  // Where memory is fragmented, a program may run with less and run out with more.
  const int64_t most = enough;
  const int64_t span = most - too_few;
  for (int64_t i = 1; i < kNumTried; ++i) {
    const int64_t tried = most - span * i / kNumTried;
    if (!fits(tried)) {
      too_few = tried;
      break;
    }
    enough = tried;
  }
  while (enough - too_few > 1) {
    const int64_t middle = too_few + (enough - too_few) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  return enough * kUnit;
}

}  // namespace hpo::memory
