#include "common/memory/cached_replay.h"

#include <algorithm>
#include <utility>

#include "common/memory/trial_passes.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr Bytes kSegmentUnit = MiB(2);
constexpr Bytes kTensorUnit{512};
// The needed limit is searched to this share of the tensors' peak.
constexpr int64_t kLimitSteps = 256;
// Needs this many percent below another are fragile.
constexpr int64_t kFragilePercent = 3;

// The median row's tokens; the longest allowed where no row is known.
int64_t MedianTokens(const EstimateInput& input) {
  const int64_t median = MedianLength(input.workload.train_lengths);
  return LongestTokens(input, median == 0 ? LengthHistogram{} : LengthHistogram{{median, 1}});
}

// The step of the longest rows, with all rows of `tokens`.
std::vector<BatchShape> WithTokens(std::vector<BatchShape> parts, int64_t tokens) {
  for (BatchShape& part : parts) part.tokens = std::min(part.tokens, tokens);
  return parts;
}

// Cuts behind what is never freed, and wherever nothing else is alive.
std::vector<std::span<const TraceEvent>> Cut(const AllocationTrace& trace) {
  std::vector<bool> is_freed(static_cast<size_t>(trace.num_blocks));
  for (const TraceEvent& event : trace.events) {
    if (!event.allocates) is_freed[static_cast<size_t>(event.block)] = true;
  }
  const std::span<const TraceEvent> all(trace.events);
  std::vector<std::span<const TraceEvent>> stretches;
  size_t begin = 0;
  const auto cut_before = [&](size_t event) {
    stretches.push_back(all.subspan(begin, event - begin));
    begin = event;
  };
  int64_t alive = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (stretches.empty() && is_freed[static_cast<size_t>(all[i].block)]) cut_before(i);
    if (stretches.empty()) continue;
    alive += all[i].allocates ? 1 : -1;
    if (alive == 0) cut_before(i + 1);
  }
  HPO_CHECK(begin == all.size());
  return stretches;
}

}  // namespace

CachedReplay::CachedReplay(const EstimateInput& input, const MemoryPlan& plan,
                           const ClassifierShape& shape, const KernelTraits& traits) {
  TrialPasses passes = LargestPasses(input, plan);
  std::vector<std::vector<BatchShape>>& steps = passes.stretches.front().steps;
  std::vector<BatchShape> shorter = WithTokens(steps.front(), MedianTokens(input));
  if (shorter != steps.front()) steps.push_back(std::move(shorter));
  const size_t num_steps = steps.size();
  trace_ = TraceTrial(shape, passes, traits);
  const std::vector<Stretch> stretches = Cut(trace_);
  HPO_CHECK(stretches.size() == num_steps + 2);
  live_peak_ = FindLivePeak(trace_, kTensorUnit).peak;
  unit_ = RoundUp(Bytes{live_peak_.count / kLimitSteps + 1}, kSegmentUnit);
  loaded_.blocks.resize(static_cast<size_t>(trace_.num_blocks));
  loaded_.Play(stretches.front());
  const Stretch longest = stretches[1];
  const Stretch evaluation = stretches.back();
  Order order = {longest, evaluation};
  if (num_steps > 1) order.push_back(stretches[2]);
  order.insert(order.end(), {longest, evaluation});
  orders_.push_back(order);
  order.front() = evaluation;
  order[1] = longest;
  orders_.push_back(std::move(order));
}

bool CachedReplay::Player::Play(Stretch events) {
  for (const TraceEvent& event : events) {
    AllocatorModel::Block& block = blocks[static_cast<size_t>(event.block)];
    if (!event.allocates) {
      allocator.Free(block);
      continue;
    }
    const auto allocated = allocator.Allocate(Bytes{event.bytes}, event.stream);
    if (!allocated.has_value()) return false;
    block = *allocated;
  }
  return true;
}

bool CachedReplay::Completes(const Order& order, Bytes limit) const {
  // Loading frees nothing, so that a limit would have changed nothing but whether it completes.
  if (loaded_.allocator.stats().reserved > limit) return false;
  Player player = loaded_;
  player.allocator.SetLimit(limit);
  return std::all_of(order.begin(), order.end(),
                     [&player](Stretch stretch) { return player.Play(stretch); });
}

Bytes CachedReplay::ReservedPeak(const Order& order) const {
  Player player = loaded_;
  for (const Stretch stretch : order) player.Play(stretch);
  return player.allocator.stats().reserved_peak;
}

// The smallest multiple of unit_ above `too_little` at which the order completes, by steps that
// double until one does, then by halves: it is usually near. nullopt where it is above `limit`.
std::optional<Bytes> CachedReplay::SmallestLimit(const Order& order, Bytes too_little,
                                                 Bytes limit) const {
  Bytes step = unit_;
  Bytes enough;
  for (; enough == Bytes{}; step += step) {
    if (too_little + unit_ > limit) return std::nullopt;
    (Completes(order, too_little + step) ? enough : too_little) = too_little + step;
  }
  while (enough - too_little > unit_) {
    if (too_little + unit_ > limit) return std::nullopt;
    const int64_t units = (enough - too_little).count / unit_.count;
    const Bytes middle = too_little + units / 2 * unit_;
    (Completes(order, middle) ? enough : too_little) = middle;
  }
  if (enough > limit) return std::nullopt;
  return enough;
}

bool CachedReplay::FitsWithin(Bytes limit) const {
  return std::all_of(orders_.begin(), orders_.end(),
                     [&](const Order& order) { return Completes(order, limit); });
}

CachedBytes CachedReplay::Need() const { return *NeedWithin(Bytes{AllocatorOptions::kUnlimited}); }

std::optional<CachedBytes> CachedReplay::NeedWithin(Bytes limit) const {
  const Bytes too_little = RoundUp(live_peak_, unit_) - unit_;
  CachedBytes need;
  for (const Order& order : orders_) {
    const bool is_first = need.needed_limit == Bytes{};
    const bool is_enough = !is_first && Completes(order, need.needed_limit);
    if (is_enough) {
      const Bytes less{need.needed_limit.count / 100 * (100 - kFragilePercent)};
      need.fragile = need.fragile || (less > live_peak_ && Completes(order, less));
      continue;
    }
    const std::optional<Bytes> own =
        SmallestLimit(order, is_first ? too_little : need.needed_limit, limit);
    if (!own.has_value()) return std::nullopt;
    const Bytes more{need.needed_limit.count / 100 * (100 + kFragilePercent)};
    need.fragile = !is_first && (need.fragile || *own > more);
    need.needed_limit = *own;
  }
  for (const Order& order : orders_) {
    need.reserved_peak = std::max(need.reserved_peak, ReservedPeak(order));
  }
  return need;
}

}  // namespace hpo
