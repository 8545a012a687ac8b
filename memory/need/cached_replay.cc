#include "memory/need/cached_replay.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/drawn_batches.h"
#include "memory/trace/trial_passes.h"

namespace hpo::memory {
namespace {

constexpr Bytes kLimitUnit = MiB(2);
// The needed limit is searched to this share of the tensors' peak.
constexpr int64_t kLimitSteps = 256;
// Needs this many percent below another are fragile.
constexpr int64_t kFragilePercent = 3;
// Steps that are drawn where batches vary in length.
constexpr int64_t kDrawnSteps = 16;
// What runs within a limit need not run within every larger one: of batches of varying length the
// need is a limit at which, and so many percent above which, every order completes.
constexpr int64_t kAbovePercent[] = {3, 6};

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

// In place of a step's number: the evaluation.
constexpr size_t kEvaluate = SIZE_MAX;

// The first of the distinct steps is the longest.
struct StepsOfTrial {
  struct Run {
    std::vector<size_t> steps = {};  // numbers of distinct ones, in their order
    size_t first_evaluation = 0;     // batch of an evaluation: the largest, or the first drawn
  };

  std::vector<std::vector<BatchShape>> distinct;
  std::vector<BatchShape> evaluation;  // batches after the largest
  std::vector<Run> runs;
  bool varies = false;

  size_t NumberOf(const std::vector<BatchShape>& step) {
    const auto found = std::find(distinct.begin(), distinct.end(), step);
    if (found != distinct.end()) return static_cast<size_t>(found - distinct.begin());
    distinct.push_back(step);
    return distinct.size() - 1;
  }
};

// Two epochs as they may be drawn; and the longest batch after each of these, the shortest first,
// which then finds segments of a size that it cannot use whole.
void AddVaryingRuns(const DrawnBatches& drawn, StepsOfTrial& steps) {
  std::vector<size_t> run;
  for (const std::vector<BatchShape>& step : drawn.steps) run.push_back(steps.NumberOf(step));
  std::vector<size_t> ascending = run;
  const auto size_of = [&steps](size_t step) {
    int64_t most = 0;
    for (const BatchShape& part : steps.distinct[step]) most = std::max(most, part.TotalTokens());
    return most;
  };
  std::stable_sort(ascending.begin(), ascending.end(),
                   [&](size_t a, size_t b) { return size_of(a) < size_of(b); });
  ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
  std::vector<size_t> alternating;
  for (const size_t step : ascending) alternating.insert(alternating.end(), {step, 0});
  alternating.push_back(kEvaluate);
  run.insert(run.begin() + static_cast<std::ptrdiff_t>(run.size() / 2), kEvaluate);
  run.push_back(kEvaluate);
  steps.runs = {{.steps = std::move(run), .first_evaluation = 1},
                {.steps = std::move(alternating)}};
}

StepsOfTrial StepsOf(const EstimateInput& input, const MemoryPlan& plan) {
  StepsOfTrial steps;
  const int64_t rows = TrainingRows(input.workload);
  const bool is_one_batch = rows > 0 && rows <= plan.effective_batch;
  steps.distinct = {StepOver(input, plan, is_one_batch ? rows : plan.effective_batch)};
  DrawnBatches drawn = DrawBatches(input, plan, kDrawnSteps);
  const BatchShape& longest = steps.distinct.front().front();
  const auto differs = [&longest](const std::vector<BatchShape>& step) {
    return step.front().tokens != longest.tokens || step.front().packed != longest.packed;
  };
  // Of queries the rows of a batch vary too.
  steps.varies = !is_one_batch && !drawn.steps.empty() &&
                 (!input.workload.train_queries.empty() ||
                  std::any_of(drawn.steps.begin(), drawn.steps.end(), differs));
  if (steps.varies) {
    steps.evaluation = std::move(drawn.evaluation);
    AddVaryingRuns(drawn, steps);
    return steps;
  }
  // Twice: under a limit the cache is not yet what it stays after the first.
  steps.runs = {{.steps = {0, 0}}};
  if (!is_one_batch && rows % plan.effective_batch > 0) {
    steps.runs.front().steps.push_back(
        steps.NumberOf(StepOver(input, plan, rows % plan.effective_batch)));
  }
  steps.runs.front().steps.push_back(kEvaluate);
  return steps;
}

}  // namespace

CachedReplay::CachedReplay(const EstimateInput& input, const MemoryPlan& plan,
                           const ClassifierShape& shape, const KernelTraits& traits) {
  const StepsOfTrial steps = StepsOf(input, plan);
  TrialPasses passes = LargestPasses(input, plan);
  passes.stretches.front().steps = steps.distinct;
  std::vector<BatchShape>& evaluation = passes.stretches.front().evaluation;
  evaluation.insert(evaluation.end(), steps.evaluation.begin(), steps.evaluation.end());
  trace_ = TraceTrial(shape, passes, traits);
  const std::vector<Stretch> stretches = CutIntoStretches(trace_);
  HPO_CHECK(stretches.size() == 1 + steps.distinct.size() + evaluation.size());
  Load(input, traits, stretches.front());
  const std::span<const Stretch> of_steps = std::span(stretches).subspan(1, steps.distinct.size());
  const std::span<const Stretch> evaluations = std::span(stretches).last(evaluation.size());
  varies_ = steps.varies;
  for (const StepsOfTrial::Run& run : steps.runs) {
    const auto evaluated =
        evaluations.subspan(std::min(run.first_evaluation, evaluations.size() - 1));
    Order order = {of_steps.front(), evaluated.front()};
    for (const size_t step : run.steps) {
      if (step == kEvaluate) {
        order.insert(order.end(), evaluated.begin(), evaluated.end());
      } else {
        order.push_back(of_steps[step]);
      }
    }
    orders_.push_back(std::move(order));
  }
  orders_.push_back(orders_.front());
  std::swap(orders_.back()[0], orders_.back()[1]);
  num_that_run_ = orders_.size() - (input.config.clear_cache_every > 0 ? 0 : 1);
}

// `loading` is a stretch of trace_.
void CachedReplay::Load(const EstimateInput& input, const KernelTraits& traits, Stretch loading) {
  live_peak_ = FindLivePeak(trace_, Bytes{traits.granularity});
  unit_ = RoundUp(Bytes{live_peak_.peak.count / kLimitSteps + 1}, kLimitUnit);
  StretchPlayer player(input.device, traits, trace_.num_blocks);
  held_ = player.stats().allocated;
  least_ = held_ + live_peak_.peak;
  player.Play(loading);
  loaded_ = std::move(player);
}

Bytes CachedReplay::Lacking(const Order& order, Bytes limit) const {
  // Loading frees nothing, so that a limit would have changed nothing but whether it completes.
  const Bytes loaded = loaded_->stats().reserved;
  if (loaded > limit) return loaded - limit;
  StretchPlayer player = *loaded_;
  player.SetLimit(limit);
  const bool completes = std::all_of(order.begin(), order.end(),
                                     [&player](Stretch stretch) { return player.Play(stretch); });
  return completes ? Bytes{} : player.stats().lacking;
}

AllocatorStats CachedReplay::Unlimited(const Order& order) const {
  StretchPlayer player = *loaded_;
  for (const Stretch stretch : order) player.Play(stretch);
  return player.stats();
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

Bytes CachedReplay::SmallestLimitOfAll() const {
  Bytes found = RoundUp(least_, unit_);
  for (size_t i = 0; i < num_that_run_; ++i) found = SmallestLimit(orders_[i], found);
  if (!varies_) return found;
  for (bool is_steady = false; !is_steady;) {
    is_steady = true;
    for (const int64_t percent : kAbovePercent) {
      if (FitsWithin(Bytes{found.count / 100 * (100 + percent)})) continue;
      is_steady = false;
      found += unit_;
      for (size_t i = 0; i < num_that_run_; ++i) found = SmallestLimit(orders_[i], found);
      break;
    }
  }
  return found;
}

bool CachedReplay::FitsWithin(Bytes limit) const {
  return std::all_of(
      orders_.begin(), orders_.begin() + static_cast<std::ptrdiff_t>(num_that_run_),
      [this, limit](const Order& order) { return Lacking(order, limit) == Bytes{}; });
}

std::optional<CachedBytes> CachedReplay::NeedWithin(Bytes limit) const {
  // What runs within a limit need not run within every larger one.
  if (limit.count != AllocatorOptions::kUnlimited && !FitsWithin(limit)) return std::nullopt;
  CachedBytes need{.needed_limit = SmallestLimitOfAll()};
  if (need.needed_limit > limit) return std::nullopt;
  for (size_t i = 0; i < num_that_run_; ++i) {
    const AllocatorStats stats = Unlimited(orders_[i]);
    if (i == 0) need.expected_reserved_peak = stats.reserved_peak;
    need.expected_live_peak = std::max(need.expected_live_peak, stats.allocated_peak - held_);
    need.reserved_peak = std::max(need.reserved_peak, stats.reserved_peak);
  }
  const Bytes less{need.needed_limit.count / 100 * (100 - kFragilePercent)};
  const Bytes more{need.needed_limit.count / 100 * (100 + kFragilePercent)};
  const Order& emptied = orders_.back();
  need.fragile =
      Lacking(emptied, more) > Bytes{} || (less > least_ && Lacking(emptied, less) == Bytes{});
  return need;
}

}  // namespace hpo::memory
