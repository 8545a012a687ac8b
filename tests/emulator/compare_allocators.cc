// Torch's own caching allocator for CUDA, on the emulated card, against hpo::AllocatorModel: random
// traces, event by event. A trace differs where after any event the outcome, the bytes that are
// allocated or reserved, their peaks, the retries or the out-of-memory errors do; the order of
// segments does not count. Prints one JSON line; the exit status is 1 where a trace differs.
//
// Traces are run in batches, each in a child of its own, since torch takes some options once in a
// process, and a fraction of the card, once set, stays. What a trace is follows from the seed and
// its number alone.
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "memory/allocator/allocator_model.h"
#include "memory/allocator/allocator_settings.h"
#include "nlohmann/json.hpp"
#include "tests/emulator/allocation_draws.h"

namespace hpo::emulator {
namespace {

namespace torch_allocator = c10::cuda::CUDACachingAllocator;

constexpr size_t kAggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
constexpr int64_t kTracesPerBatch = 25;

struct Arguments {
  int64_t traces = 1000;
  int64_t events = 3000;
  uint64_t seed = 1;
  int jobs = 1;
  std::string setting;  // empty: all
  std::string end;
};

// ---- What a batch is ---------------------------------------------------------------------------

constexpr const char* kSettings[] = {"default",    "expandable", "split",
                                     "collection", "roundup",    "mixed"};
// What runs out: a fraction that was set, the card itself, or whichever comes first.
constexpr const char* kEnds[] = {"fraction", "card", "both"};

struct Batch {
  int64_t number = 0;
  int64_t num_traces = kTracesPerBatch;
  std::string setting;
  std::string end;
};

// Which options a batch sets; their values are each trace's own.
struct UsedOptions {
  bool expandable = false;
  bool split = false;
  bool collection = false;
  bool roundup = false;
};

UsedOptions OptionsOf(const Batch& batch, std::mt19937_64& random) {
  const auto uses = [&](const char* name) {
    return batch.setting == name || (batch.setting == "mixed" && random() % 3 != 0);
  };
  UsedOptions used;
  used.expandable = uses("expandable");
  used.split = uses("split");
  used.collection = uses("collection");
  used.roundup = uses("roundup");
  return used;
}

memory::AllocatorOptions DrawOptions(const UsedOptions& used, std::mt19937_64& random) {
  memory::AllocatorOptions options;
  options.expandable_segments = used.expandable;
  if (used.split) options.max_split_bytes = MiB(static_cast<int64_t>(21 + random() % 200)).count;
  if (used.collection) {
    options.garbage_collection_threshold = 0.05 * static_cast<double>(2 + random() % 18);
  }
  if (used.roundup) options.roundup_power2_divisions = int64_t{1} << (1 + random() % 5);
  return options;
}

// ---- One trace ---------------------------------------------------------------------------------

struct Counts {
  int64_t traces = 0;
  int64_t events = 0;
  int64_t ooms = 0;
  int64_t retries = 0;
  int64_t differ = 0;
};

struct Held {
  void* real = nullptr;
  memory::AllocatorModel::Block modelled = 0;
};

memory::AllocatorStats RealStats() {
  const auto stats = torch_allocator::getDeviceStats(0);
  return {.allocated = Bytes{stats.allocated_bytes[kAggregate].current},
          .allocated_peak = Bytes{stats.allocated_bytes[kAggregate].peak},
          .reserved = Bytes{stats.reserved_bytes[kAggregate].current},
          .reserved_peak = Bytes{stats.reserved_bytes[kAggregate].peak},
          .num_retries = stats.num_alloc_retries,
          .num_ooms = stats.num_ooms};
}

std::string Describe(const memory::AllocatorStats& stats) {
  return absl::StrCat("allocated ", stats.allocated.count, " (peak ", stats.allocated_peak.count,
                      "), reserved ", stats.reserved.count, " (peak ", stats.reserved_peak.count,
                      "), retries ", stats.num_retries, ", ooms ", stats.num_ooms);
}

// The card with its two allocators. Both begin empty.
class Pair {
 public:
  Pair(const memory::AllocatorOptions& options, std::span<const cudaStream_t> streams, Bytes total)
      : streams_(streams), total_(total), model_(options) {
    torch_allocator::resetAccumulatedStats(0);
    torch_allocator::resetPeakStats(0);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  ~Pair() {
    for (const Held& held : held_) torch_allocator::raw_delete(held.real);
    torch_allocator::emptyCache();
  }

  size_t num_held() const { return held_.size(); }

  // Whether the two agree on how it ends.
  bool Allocate(Bytes size, uint8_t stream) {
    Held held;
    try {
      held.real =
          torch_allocator::raw_alloc_with_stream(static_cast<size_t>(size.count), streams_[stream]);
    } catch (const c10::OutOfMemoryError&) {
      held.real = nullptr;
    }
    const std::optional<memory::AllocatorModel::Block> modelled = model_.Allocate(size, stream);
    if (modelled.has_value() != (held.real != nullptr)) {
      if (held.real != nullptr) torch_allocator::raw_delete(held.real);
      return false;
    }
    held.modelled = modelled.value_or(0);
    if (modelled.has_value()) held_.push_back(held);
    return true;
  }

  void Free(size_t which) {
    torch_allocator::raw_delete(held_[which].real);
    model_.Free(held_[which].modelled);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void EmptyCache() {
    torch_allocator::emptyCache();
    model_.EmptyCache();
  }

  void SetLimit(double fraction) {
    torch_allocator::setMemoryFraction(fraction, 0);
    model_.SetLimit(LimitOf(fraction, total_));
  }

  static Bytes LimitOf(double fraction, Bytes total) {
    return Bytes{static_cast<int64_t>(fraction * static_cast<double>(total.count))};
  }

  // nullopt where the counts agree.
  std::optional<std::string> Difference() const {
    memory::AllocatorStats modelled = model_.stats();
    modelled.lacking = {};
    const memory::AllocatorStats real = RealStats();
    if (real == modelled) return std::nullopt;
    return absl::StrCat("torch: ", Describe(real), "; model: ", Describe(modelled));
  }

  const memory::AllocatorStats& stats() const { return model_.stats(); }

 private:
  const std::span<const cudaStream_t> streams_;
  const Bytes total_;
  memory::AllocatorModel model_;
  std::vector<Held> held_;
};

// ---- A batch, in a process of its own ----------------------------------------------------------

class BatchRun {
 public:
  BatchRun(const Arguments& arguments, const Batch& batch)
      : arguments_(arguments),
        batch_(batch),
        random_(arguments.seed * 1'000'003 + static_cast<uint64_t>(batch.number)),
        used_(OptionsOf(batch, random_)) {
    SetUpCard();
    torch_allocator::init(1);
    streams_.resize(AllocationDraws::kNumStreams, nullptr);
    for (size_t i = 1; i < streams_.size(); ++i) C10_CUDA_CHECK(cudaStreamCreate(&streams_[i]));
    std::sort(streams_.begin(), streams_.end());
  }

  Counts Run() {
    for (int64_t i = 0; i < batch_.num_traces; ++i) RunTrace(i);
    return counts_;
  }

 private:
  // Most cards are small, so that what an expandable segment can grow to ends too.
  void SetUpCard() {
    if (random_() % 3 != 0) Emulate("MEMORY", 1024 + random_() % 7168);
    if (random_() % 2 == 0) Emulate("CONTEXT", 0);
  }

  static void Emulate(const char* what, uint64_t mebibytes) {
    setenv(absl::StrCat("HPO_EMULATED_", what).c_str(), absl::StrCat(mebibytes, "MiB").c_str(),
           /*overwrite=*/1);
  }

  double Uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  static Bytes FreeBytes(Bytes* total) {
    size_t free = 0;
    size_t all = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &all));
    *total = Bytes{static_cast<int64_t>(all)};
    return Bytes{static_cast<int64_t>(free)};
  }

  void RunTrace(int64_t number) {
    memory::AllocatorOptions options = DrawOptions(used_, random_);
    c10::CachingAllocator::setAllocatorSettings(memory::FormatAllocatorSettings(options));
    Bytes total;
    // What somebody else holds of the card.
    void* others = nullptr;
    const Bytes free = FreeBytes(&total);
    if (random_() % 3 != 0) {
      const Bytes wanted{
          static_cast<int64_t>(static_cast<double>(free.count) * Uniform(0.0, 0.95))};
      C10_CUDA_CHECK(cudaMalloc(&others, static_cast<size_t>(wanted.count)));
    }
    options.card = {.total = total, .left = FreeBytes(&total)};
    double fraction = 1.0;
    const auto left = static_cast<double>(options.card.left.count);
    if (batch_.end == "fraction") fraction = Uniform(0.02, 0.98) * left;
    if (batch_.end == "both") fraction = Uniform(0.7, 1.2) * left;
    if (batch_.end != "card") {
      fraction = std::min(1.0, fraction / static_cast<double>(total.count));
      options.limit = Pair::LimitOf(fraction, total);
    }
    Compare(number, options, total, fraction);
    if (others != nullptr) C10_CUDA_CHECK(cudaFree(others));
  }

  void Compare(int64_t number, const memory::AllocatorOptions& options, Bytes total,
               double fraction) {
    const Bytes end = std::min(options.limit, options.card.left);
    // Of 3 to 80 such requests the limit would be full.
    const Bytes large{static_cast<int64_t>(static_cast<double>(end.count) / Uniform(3.0, 80.0))};
    AllocationDraws draws(random_(), std::max(KiB(64), large));
    Pair pair(options, streams_, total);
    if (batch_.end != "card") pair.SetLimit(fraction);
    ++counts_.traces;
    for (int64_t event = 0; event < arguments_.events; ++event) {
      ++counts_.events;
      std::optional<std::string> difference;
      const AllocationDraw draw = draws.Next(pair.num_held());
      switch (draw.kind) {
        case AllocationDraw::Kind::kAllocate:
          if (!pair.Allocate(draw.size, draw.stream)) difference = "the outcome";
          break;
        case AllocationDraw::Kind::kFree:
          pair.Free(draw.which);
          break;
        case AllocationDraw::Kind::kEmptyCache:
          pair.EmptyCache();
          break;
        case AllocationDraw::Kind::kSetLimit:
          if (batch_.end != "card") pair.SetLimit(fraction * draw.share);
          break;
      }
      if (!difference.has_value()) difference = pair.Difference();
      if (!difference.has_value()) continue;
      ++counts_.differ;
      std::fprintf(stderr,
                   "batch %ld trace %ld event %ld (%s, %s, limit %ld, card %ld of %ld): %s\n",
                   batch_.number, number, event, memory::FormatAllocatorSettings(options).c_str(),
                   batch_.end.c_str(), options.limit.count, options.card.left.count,
                   options.card.total.count, difference->c_str());
      break;
    }
    counts_.ooms += pair.stats().num_ooms;
    counts_.retries += pair.stats().num_retries;
  }

  const Arguments& arguments_;
  const Batch batch_;
  std::mt19937_64 random_;
  const UsedOptions used_;
  std::vector<cudaStream_t> streams_;
  Counts counts_;
};

std::vector<std::string> Settings() { return {std::begin(kSettings), std::end(kSettings)}; }
std::vector<std::string> Ends() { return {std::begin(kEnds), std::end(kEnds)}; }

// ---- All batches -------------------------------------------------------------------------------

std::vector<Batch> BatchesOf(const Arguments& arguments) {
  std::vector<Batch> batches;
  const auto matches = [](const std::string& wanted, const std::string& name) {
    return wanted.empty() || wanted == name;
  };
  int64_t left = arguments.traces;
  for (int64_t number = 0; left > 0; ++number) {
    Batch batch{
        .number = number,
        .num_traces = std::min(left, kTracesPerBatch),
        .setting = kSettings[static_cast<size_t>(number) % std::size(kSettings)],
        .end = kEnds[static_cast<size_t>(number) / std::size(kSettings) % std::size(kEnds)]};
    if (!matches(arguments.setting, batch.setting) || !matches(arguments.end, batch.end)) continue;
    left -= batch.num_traces;
    batches.push_back(std::move(batch));
  }
  return batches;
}

// A batch that runs, and where it will write its counts.
struct Child {
  pid_t process = 0;
  int pipe = -1;
  Batch batch;
};

Child Start(const Arguments& arguments, const Batch& batch) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return {};
  const pid_t process = fork();
  if (process != 0) {
    close(ends[1]);
    return {.process = process, .pipe = ends[0], .batch = batch};
  }
  close(ends[0]);
  const Counts counts = BatchRun(arguments, batch).Run();
  const bool written = write(ends[1], &counts, sizeof counts) == sizeof counts;
  _exit(written ? 0 : 2);
}

// nullopt where the child did not come to its end.
std::optional<Counts> Finish(const Child& child) {
  Counts counts;
  const bool is_read = read(child.pipe, &counts, sizeof counts) == sizeof counts;
  close(child.pipe);
  int status = 0;
  const bool ended = waitpid(child.process, &status, 0) == child.process && WIFEXITED(status);
  if (!is_read || !ended || WEXITSTATUS(status) != 0) return std::nullopt;
  return counts;
}

void Add(const Counts& more, Counts& sum) {
  sum.traces += more.traces;
  sum.events += more.events;
  sum.ooms += more.ooms;
  sum.retries += more.retries;
  sum.differ += more.differ;
}

nlohmann::json JsonOf(const Counts& counts) {
  return {{"traces", counts.traces},
          {"events", counts.events},
          {"ooms", counts.ooms},
          {"retries", counts.retries},
          {"traces_that_differ", counts.differ}};
}

int RunAll(const Arguments& arguments) {
  const absl::Time start = absl::Now();
  const std::vector<Batch> batches = BatchesOf(arguments);
  std::map<std::string, Counts> parts;
  Counts sum;
  std::vector<Child> children;
  size_t next = 0;
  for (size_t finished = 0; finished < batches.size(); ++finished) {
    while (next < batches.size() && children.size() < static_cast<size_t>(arguments.jobs)) {
      children.push_back(Start(arguments, batches[next++]));
    }
    const Child child = children.front();
    children.erase(children.begin());
    const std::optional<Counts> counts = Finish(child);
    if (!counts.has_value()) {
      std::fprintf(stderr, "batch %ld (%s, %s) did not come to its end\n", child.batch.number,
                   child.batch.setting.c_str(), child.batch.end.c_str());
      return 2;
    }
    Add(*counts, sum);
    Add(*counts, parts[absl::StrCat(child.batch.setting, " ", child.batch.end)]);
  }
  nlohmann::json line = JsonOf(sum);
  line["emulated"] = true;
  line["seconds"] = absl::ToDoubleSeconds(absl::Now() - start);
  for (const auto& [name, counts] : parts) line["parts"][name] = JsonOf(counts);
  std::printf("%s\n", line.dump().c_str());
  return sum.differ == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hpo::emulator

int main(int argc, char** argv) {
  hpo::emulator::Arguments arguments;
  CLI::App app("Torch's caching allocator, on the emulated card, against the model of it");
  app.add_option("--traces", arguments.traces)->check(CLI::PositiveNumber);
  app.add_option("--events", arguments.events, "of each trace")->check(CLI::PositiveNumber);
  app.add_option("--seed", arguments.seed);
  app.add_option("--jobs", arguments.jobs, "processes at a time")->check(CLI::PositiveNumber);
  app.add_option("--setting", arguments.setting)->check(CLI::IsMember(hpo::emulator::Settings()));
  app.add_option("--end", arguments.end)->check(CLI::IsMember(hpo::emulator::Ends()));
  CLI11_PARSE(app, argc, argv);
  return hpo::emulator::RunAll(arguments);
}
