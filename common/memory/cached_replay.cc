#include "common/memory/cached_replay.h"

#include <algorithm>
#include <utility>

#include "common/memory/trial_passes.h"

namespace hpo {
namespace {

constexpr Bytes kSegmentUnit = MiB(2);
// The needed limit is searched to this share of the reserved peak.
constexpr int64_t kLimitSteps = 256;

// The median row's tokens; the longest allowed where no row is known.
int64_t MedianTokens(const EstimateInput& input) {
  const LengthHistogram& lengths = input.workload.train_lengths;
  int64_t rows = 0;
  for (const auto& [length, count] : lengths) rows += std::max<int64_t>(0, count);
  int64_t seen = 0;
  for (const auto& [length, count] : lengths) {
    seen += std::max<int64_t>(0, count);
    if (2 * seen >= rows && count > 0) return LongestTokens(input, {{length, 1}});
  }
  return LongestTokens(input, lengths);
}

// The step of the longest rows, with all rows of `tokens`.
std::vector<BatchShape> WithTokens(std::vector<BatchShape> parts, int64_t tokens) {
  for (BatchShape& part : parts) part.tokens = std::min(part.tokens, tokens);
  return parts;
}

}  // namespace

CachedReplay::CachedReplay(const EstimateInput& input, const MemoryPlan& plan,
                           const BertClassifierShape& shape, const KernelTraits& traits) {
  TrialPasses passes = LargestPasses(input, plan);
  MeasuredSteps& last = passes.stretches.back();
  const std::vector<BatchShape> longest = last.steps.front();
  std::vector<BatchShape> shorter = WithTokens(longest, MedianTokens(input));
  if (shorter != longest) last.steps.push_back(std::move(shorter));
  last.steps.push_back(longest);
  traces_.push_back(TraceBertTrial(shape, passes, traits));
  const MeasuredSteps evaluation{.steps = {}, .evaluation = last.evaluation};
  passes.stretches.insert(passes.stretches.begin(), evaluation);
  traces_.push_back(TraceBertTrial(shape, passes, traits));
}

bool CachedReplay::FitsWithin(Bytes limit) const {
  return std::all_of(traces_.begin(), traces_.end(), [limit](const AllocationTrace& trace) {
    return Replay(trace, {.limit = limit}).completed;
  });
}

CachedBytes CachedReplay::Need() const {
  CachedBytes need;
  for (const AllocationTrace& trace : traces_) {
    const AllocatorStats unlimited = Replay(trace, {}).stats;
    const Bytes unit =
        RoundUp(Bytes{unlimited.reserved_peak.count / kLimitSteps + 1}, kSegmentUnit);
    need.reserved_peak = std::max(need.reserved_peak, unlimited.reserved_peak);
    need.needed_limit = std::max(need.needed_limit, FindNeededLimit(trace, {}, unlimited, unit));
  }
  return need;
}

}  // namespace hpo
