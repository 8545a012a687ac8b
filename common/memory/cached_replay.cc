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

// Texts of the training data, or those that its queries are of; 0: not known.
int64_t TrainingRows(const Workload& workload) {
  int64_t rows = 0;
  for (const auto& [length, count] :
       workload.train_queries.empty() ? workload.train_lengths : workload.train_queries) {
    rows += count;
  }
  return rows;
}

// The step over so many rows: its largest parts as in LargestPasses, and the shorter part that is
// left at its end.
std::vector<BatchShape> StepOver(const EstimateInput& input, MemoryPlan plan, int64_t rows) {
  const auto parts_of = [&input](const MemoryPlan& of) {
    return std::move(LargestPasses(input, of).stretches.front().steps.front());
  };
  plan.effective_batch = rows;
  plan.micro_batch = std::min(plan.micro_batch, rows);
  std::vector<BatchShape> parts = parts_of(plan);
  const int64_t left = rows % plan.micro_batch;
  if (left > 0 && rows > 2 * plan.micro_batch) {
    plan.effective_batch = plan.micro_batch = left;
    for (BatchShape& part : parts_of(plan)) parts.push_back(std::move(part));
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
  const int64_t rows = TrainingRows(input.workload);
  const bool is_one_batch = rows > 0 && rows <= plan.effective_batch;
  steps.front() = StepOver(input, plan, is_one_batch ? rows : plan.effective_batch);
  const bool has_last = !is_one_batch && rows % plan.effective_batch > 0;
  if (has_last) steps.push_back(StepOver(input, plan, rows % plan.effective_batch));
  std::vector<BatchShape> shorter = WithTokens(steps.front(), MedianTokens(input));
  const bool has_shorter = !is_one_batch && shorter != steps.front();
  if (has_shorter) steps.push_back(std::move(shorter));
  const size_t num_steps = steps.size();
  trace_ = TraceTrial(shape, passes, traits);
  const std::vector<Stretch> stretches = Cut(trace_);
  HPO_CHECK(stretches.size() == num_steps + 2);
  live_peak_ = FindLivePeak(trace_, Bytes{traits.granularity});
  unit_ = RoundUp(Bytes{live_peak_.peak.count / kLimitSteps + 1}, kSegmentUnit);
  // Text of another allocator than torch's says nothing of this one.
  loaded_.allocator =
      AllocatorModel(ParseAllocatorSettings(input.device.allocator).value_or(AllocatorOptions()));
  const AllocationTrace warm_up = TraceWarmUp(traits);
  loaded_.blocks.resize(static_cast<size_t>(warm_up.num_blocks));
  loaded_.Play(warm_up.events);
  loaded_.allocator.EmptyCache();
  held_ = loaded_.allocator.stats().allocated;
  least_ = held_ + live_peak_.peak;
  loaded_.blocks.assign(static_cast<size_t>(trace_.num_blocks), {});
  loaded_.Play(stretches.front());
  const Stretch longest = stretches[1];
  const Stretch evaluation = stretches.back();
  Order order = {longest, evaluation};
  if (has_shorter) order.push_back(stretches[num_steps]);
  // Twice: under a limit the cache is not yet what it stays after the first.
  order.insert(order.end(), {longest, longest});
  if (has_last) order.push_back(stretches[2]);
  order.push_back(evaluation);
  orders_.push_back(order);
  order.front() = evaluation;
  order[1] = longest;
  orders_.push_back(std::move(order));
  num_that_run_ = input.config.clear_cache_every > 0 ? orders_.size() : 1;
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

AllocatorStats CachedReplay::Unlimited(const Order& order) const {
  Player player = loaded_;
  for (const Stretch stretch : order) player.Play(stretch);
  return player.allocator.stats();
}

// A limit from `from` on at which the order completes, a multiple of unit_: each that is tried next
// has what the last one lacked. That is what one state of the cache lacked, and may be more than is
// needed: so what lies between is halved.
Bytes CachedReplay::SmallestLimit(const Order& order, Bytes from) const {
  Bytes failed = from - unit_;
  Bytes found = from;
  while (true) {
    const Bytes lacking = Lacking(order, found);
    if (lacking == Bytes{}) break;
    failed = found;
    found = RoundUp(found + lacking, unit_);
  }
  while (found - failed > unit_) {
    const Bytes middle = RoundUp(failed + Bytes{(found - failed).count / 2}, unit_);
    if (middle >= found) break;
    (Lacking(order, middle) == Bytes{} ? found : failed) = middle;
  }
  return found;
}

bool CachedReplay::FitsWithin(Bytes limit) const {
  return std::all_of(
      orders_.begin(), orders_.begin() + static_cast<std::ptrdiff_t>(num_that_run_),
      [this, limit](const Order& order) { return Lacking(order, limit) == Bytes{}; });
}

CachedBytes CachedReplay::Need() const { return *NeedWithin(Bytes{AllocatorOptions::kUnlimited}); }

std::optional<CachedBytes> CachedReplay::NeedWithin(Bytes limit) const {
  // What runs within a limit need not run within every larger one.
  if (limit.count != AllocatorOptions::kUnlimited && !FitsWithin(limit)) return std::nullopt;
  CachedBytes need{.needed_limit = RoundUp(least_, unit_)};
  for (size_t i = 0; i < num_that_run_; ++i) {
    need.needed_limit = SmallestLimit(orders_[i], need.needed_limit);
  }
  if (need.needed_limit > limit) return std::nullopt;
  const AllocatorStats expected = Unlimited(orders_.front());
  need.expected_live_peak = expected.allocated_peak - held_;
  need.expected_reserved_peak = need.reserved_peak = expected.reserved_peak;
  for (size_t i = 1; i < num_that_run_; ++i) {
    need.reserved_peak = std::max(need.reserved_peak, Unlimited(orders_[i]).reserved_peak);
  }
  const Bytes less{need.needed_limit.count / 100 * (100 - kFragilePercent)};
  const Bytes more{need.needed_limit.count / 100 * (100 + kFragilePercent)};
  const Order& emptied = orders_.back();
  need.fragile =
      Lacking(emptied, more) > Bytes{} || (less > least_ && Lacking(emptied, less) == Bytes{});
  return need;
}

}  // namespace hpo
