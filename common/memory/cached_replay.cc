#include "common/memory/cached_replay.h"

#include <algorithm>
#include <utility>

#include "common/memory/allocator_settings.h"
#include "common/memory/trial_passes.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr Bytes kSegmentUnit = MiB(2);
// The needed limit is searched to this share of the tensors' peak.
constexpr int64_t kLimitSteps = 256;
// Needs this many percent below another are fragile.
constexpr int64_t kFragilePercent = 3;

// The median row's tokens; the longest allowed where no row is known.
int64_t MedianTokens(const EstimateInput& input) {
  const int64_t median = MedianLength(input.workload.train_lengths);
  return LongestTokens(input, median == 0 ? LengthHistogram{} : LengthHistogram{{median, 1}});
}

// The step of the longest rows, with no row above `tokens`.
std::vector<BatchShape> WithTokens(std::vector<BatchShape> parts, int64_t tokens) {
  for (BatchShape& part : parts) {
    part.tokens = std::min(part.tokens, tokens);
    for (RowGroup& group : part.packed) group.tokens = std::min(group.tokens, tokens);
  }
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
  live_peak_ = FindLivePeak(trace_, Bytes{traits.granularity});
  unit_ = RoundUp(Bytes{live_peak_.peak.count / kLimitSteps + 1}, kSegmentUnit);
  // Text of another allocator than torch's says nothing of this one.
  loaded_.allocator =
      AllocatorModel(ParseAllocatorSettings(input.device.allocator).value_or(AllocatorOptions()));
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

Bytes CachedReplay::Lacking(const Order& order, Bytes limit) const {
  // Loading frees nothing, so that a limit would have changed nothing but whether it completes.
  const Bytes loaded = loaded_.allocator.stats().reserved;
  if (loaded > limit) return loaded - limit;
  Player player = loaded_;
  player.allocator.SetLimit(limit);
  const bool completes = std::all_of(order.begin(), order.end(),
                                     [&player](Stretch stretch) { return player.Play(stretch); });
  return completes ? Bytes{} : player.allocator.stats().lacking;
}

Bytes CachedReplay::ReservedPeak(const Order& order) const {
  Player player = loaded_;
  for (const Stretch stretch : order) player.Play(stretch);
  return player.allocator.stats().reserved_peak;
}

// The first of the multiples of unit_ from `from`, one itself, at which the order completes: each
// that is tried next has what the last one lacked. nullopt where it is above `limit`.
std::optional<Bytes> CachedReplay::SmallestLimit(const Order& order, Bytes from,
                                                 Bytes limit) const {
  for (Bytes tried = from; tried <= limit;) {
    const Bytes lacking = Lacking(order, tried);
    if (lacking == Bytes{}) return tried;
    tried = RoundUp(tried + lacking, unit_);
  }
  return std::nullopt;
}

bool CachedReplay::FitsWithin(Bytes limit) const {
  return std::all_of(orders_.begin(), orders_.end(), [this, limit](const Order& order) {
    return Lacking(order, limit) == Bytes{};
  });
}

CachedBytes CachedReplay::Need() const { return *NeedWithin(Bytes{AllocatorOptions::kUnlimited}); }

std::optional<CachedBytes> CachedReplay::NeedWithin(Bytes limit) const {
  CachedBytes need{.needed_limit = RoundUp(live_peak_.peak, unit_)};
  for (const Order& order : orders_) {
    const Bytes others = need.needed_limit;
    const std::optional<Bytes> own = SmallestLimit(order, others, limit);
    if (!own.has_value()) return std::nullopt;
    need.needed_limit = *own;
    if (&order == &orders_.front()) continue;
    const Bytes less{others.count / 100 * (100 - kFragilePercent)};
    const Bytes more{others.count / 100 * (100 + kFragilePercent)};
    need.fragile = need.fragile || *own > more ||
                   (*own == others && less > live_peak_.peak && Lacking(order, less) == Bytes{});
  }
  need.expected_reserved_peak = ReservedPeak(orders_.front());
  for (const Order& order : orders_) {
    need.reserved_peak = std::max(need.reserved_peak, ReservedPeak(order));
  }
  return need;
}

}  // namespace hpo
