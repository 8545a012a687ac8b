#include "sampler/api/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/string_view.h"

namespace hpo::sampler {
namespace {

// NaN stands for every value that is not finite: storage keeps no difference between them, and a
// rebuilt history must equal a folded one.
double Signed(double value, Direction direction) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  return direction == Direction::kMaximize ? -value : value;
}

double LossOf(const Metrics& metrics, const Objective& objective) {
  const auto found = metrics.find(objective.metric);
  if (found == metrics.end() || !std::isfinite(found->second)) return kWorstLoss;
  return Signed(found->second, objective.direction);
}

Report ReportOf(int64_t step, double epoch, double loss) {
  // The largest epoch that has a place in 64 bits.
  constexpr double kMost = 9e9;
  Report report{.step = step, .loss = loss};
  if (epoch > 0.0) {
    const double progress = std::min(epoch, kMost) * static_cast<double>(kEpoch);
    report.epoch = std::max<int64_t>(std::llround(progress), 1);
  }
  return report;
}

// The best of several losses, NaN the worst: in whatever order they come.
void KeepBest(int64_t progress, double loss, Curve& curve) {
  if (curve.Add(progress, loss)) return;
  const double kept = curve.at(progress);
  if (std::isnan(loss) || (!std::isnan(kept) && kept <= loss)) return;
  Curve::Values values(curve.begin(), curve.end());
  values[progress] = loss;
  curve = Curve(std::move(values));
}

// Takes the best of what came before the trial's epochs as its value at epoch 0.
void SetEpochZero(HistoryTrial& trial) {
  Curve::Values values(trial.intermediate.begin(), trial.intermediate.end());
  values.erase(0);
  if (!trial.before_epochs.empty()) values[0] = trial.before_epochs.best();
  trial.intermediate = Curve(std::move(values));
}

// The trial's first step with an epoch, as far as it is known, is `step`.
void BeginEpochs(int64_t step, HistoryTrial& trial) {
  if (!trial.by_epoch) trial.before_epochs = std::exchange(trial.intermediate, {});
  trial.by_epoch = true;
  trial.epochs_from = step;
  Curve& before = trial.before_epochs;
  before = Curve(Curve::Values(before.begin(), before.lower_bound(step)));
  SetEpochZero(trial);
}

// Of one step the first report counts, later ones are repeats; of one epoch the best. A trial that
// has reported an epoch is known by epochs alone, in whatever order its reports come.
void Add(const Report& report, HistoryTrial& trial) {
  if (report.epoch > 0) {
    if (!trial.by_epoch || report.step < trial.epochs_from) BeginEpochs(report.step, trial);
    const int64_t last = trial.intermediate.empty() ? 0 : trial.intermediate.rbegin()->first;
    if (report.epoch > last) trial.last_epoch_from = report.step;
    // A trial that was run again reports the same steps.
    const bool again = report.epoch == last && report.step != trial.last_epoch_from;
    trial.repeats_epochs = trial.repeats_epochs || again;
    KeepBest(report.epoch, report.loss, trial.intermediate);
  } else if (!trial.by_epoch) {
    trial.intermediate.Add(report.step, report.loss);
  } else if (report.step < trial.epochs_from) {
    if (trial.before_epochs.Add(report.step, report.loss)) SetEpochZero(trial);
  }
}

void AddIntermediate(int64_t step, const Metrics& metrics, const Objective& objective,
                     HistoryTrial& trial) {
  const auto found = metrics.find(objective.metric);
  if (found == metrics.end()) return;
  Add(ReportOf(step, 0.0, Signed(found->second, objective.direction)), trial);
}

bool TeachesMemory(const OutOfMemory& oom) {
  return oom.kind == OomKind::kConfiguration || oom.kind == OomKind::kLatePeak;
}

MemoryObservation Censored(const OutOfMemory& oom) {
  const Bytes floor = oom.predicted ? oom.needed : oom.peak + oom.requested;
  return {
      .bytes = std::max(oom.limit, floor), .censored = true, .limit = oom.limit, .plan = oom.plan};
}

// What the device gave up counts, then what the allocator held, then what was alive.
Bytes UsedBytes(const MemoryReport& report) {
  if (report.device_peak.count > 0) return report.device_peak;
  if (report.reserved_peak.count > 0) return report.reserved_peak;
  return report.live_peak;
}

// Only an attempt that ran its trial to the end shows what the trial uses.
void AddExactUse(const Trial& trial, HistoryTrial& result) {
  for (const Attempt& attempt : trial.attempts) {
    if (attempt.state != AttemptState::kFinished || !attempt.memory.has_value()) continue;
    const Bytes used = UsedBytes(*attempt.memory);
    if (used.count <= 0) {
      result.ran_within = attempt.memory->limit;
      continue;
    }
    result.memory.push_back({.bytes = used,
                             .censored = false,
                             .limit = attempt.memory->limit,
                             .plan = attempt.final_plan.value_or(attempt.plan)});
  }
}

}  // namespace

double NanAsWorst(double loss) { return std::isnan(loss) ? kWorstLoss : loss; }

bool IsFinished(const HistoryTrial& trial) {
  return trial.state == TrialState::kCompleted || trial.state == TrialState::kPruned;
}

bool IsFeasible(const HistoryTrial& trial) {
  return trial.state == TrialState::kCompleted && trial.violation == 0.0;
}

bool EndedByMemory(const HistoryTrial& trial) {
  return trial.prune_reason.has_value() && *trial.prune_reason != PruneReason::kPruner;
}

void History::Apply(const HistoryEvent& event) {
  newest_from_.erase(event.trial.number);
  HistoryTrial& trial = trials_[event.trial.number];
  num_finished_ -= IsFinished(trial) ? 1 : 0;
  trial = event.trial;
  num_finished_ += IsFinished(trial) ? 1 : 0;
  sequence_ = std::max(sequence_, event.sequence);
}

void History::ApplyReports(int64_t sequence, TrialNumber trial, const Reports& reports) {
  sequence_ = std::max(sequence_, sequence);
  const auto known = trials_.find(trial);
  if (known == trials_.end()) return;
  HistoryTrial& seen = known->second;
  int64_t from = std::numeric_limits<int64_t>::max();
  for (const Report& report : reports) {
    const bool repeats =
        seen.by_epoch && seen.intermediate.find(report.epoch) != seen.intermediate.end();
    if (report.epoch > 0 && !repeats) from = std::min(from, report.epoch);
    Add(report, seen);
  }
  newest_from_[trial] = from;
}

int64_t History::NewestFrom(const HistoryTrial& trial) const {
  const auto found = newest_from_.find(trial.number);
  if (found != newest_from_.end()) return found->second;
  return trial.intermediate.empty() ? 0 : trial.intermediate.rbegin()->first;
}

Reports ReportsOf(const std::vector<Measurement>& measurements, const Objective& objective) {
  Reports reports;
  for (const Measurement& measurement : measurements) {
    const auto found = measurement.metrics.find(objective.metric);
    if (found == measurement.metrics.end()) continue;
    reports.push_back(
        ReportOf(measurement.step, measurement.epoch, Signed(found->second, objective.direction)));
  }
  return reports;
}

int64_t NumIn(TrialState state, const History& history) {
  return std::count_if(history.trials().begin(), history.trials().end(),
                       [state](const auto& entry) { return entry.second.state == state; });
}

HistoryTrial ToHistory(const Trial& trial, const std::vector<Measurement>& measurements,
                       const std::vector<Objective>& objectives,
                       const std::vector<MetricConstraint>& constraints) {
  HistoryTrial result{.number = trial.id.number, .params = trial.params, .state = trial.state};
  result.budgeted = trial.budgeted;
  result.imported = !trial.origin.empty();
  result.violation = trial.violation;
  if (trial.outcome.has_value()) result.prune_reason = PruneReasonOf(*trial.outcome);
  if (!objectives.empty()) {
    for (const Report& report : ReportsOf(measurements, objectives.front())) Add(report, result);
  }
  if (trial.min_capacity.count > 0) {
    result.memory.push_back(
        {.bytes = trial.min_capacity, .censored = true, .limit = trial.min_capacity});
  }
  if (!trial.outcome.has_value()) return result;
  if (const Completed* completed = std::get_if<Completed>(&*trial.outcome)) {
    for (const Objective& objective : objectives) {
      result.losses.push_back(LossOf(completed->metrics, objective));
    }
    result.excesses = ExcessesOf(constraints, completed->metrics);
    AddExactUse(trial, result);
  } else if (const auto* stopped = std::get_if<StoppedByPruner>(&*trial.outcome)) {
    if (!objectives.empty()) {
      AddIntermediate(stopped->step, stopped->metrics, objectives.front(), result);
    }
    AddExactUse(trial, result);
  } else if (const auto* oom = std::get_if<OutOfMemory>(&*trial.outcome);
             oom != nullptr && TeachesMemory(*oom)) {
    result.memory.push_back(Censored(*oom));
  }
  return result;
}

Bytes MemoryNeed(const HistoryTrial& trial, MemoryPolicy policy) {
  Bytes most;
  for (const MemoryObservation& seen : trial.memory) {
    const bool splittable =
        policy == MemoryPolicy::kPlan && !seen.censored && seen.plan.micro_batch > 1;
    if (splittable) continue;
    // A censored need is above what is known of it, by a byte at least.
    const Bytes need =
        seen.censored ? Bytes{std::max(seen.bytes.count, seen.limit.count) + 1} : seen.bytes;
    most = std::max(most, need);
  }
  return most;
}

std::optional<Bytes> LargerClassThan(const HistoryTrial& trial) {
  Bytes most;
  for (const MemoryObservation& seen : trial.memory) {
    if (!seen.censored) most = std::max(most, seen.limit);
  }
  const int64_t more = most.count / 8;
  const bool no_larger = most.count > std::numeric_limits<int64_t>::max() - more;
  if (most <= Bytes{} || no_larger) return std::nullopt;
  return Bytes{most.count + more};
}

double MemoryViolation(const HistoryTrial& trial, Bytes capacity, MemoryPolicy policy) {
  if (capacity <= Bytes{}) return EndedByMemory(trial) ? 1.0 : 0.0;
  const Bytes need = MemoryNeed(trial, policy);
  if (need <= capacity) return 0.0;
  return (static_cast<double>(need.count) - static_cast<double>(capacity.count)) /
         static_cast<double>(capacity.count);
}

}  // namespace hpo::sampler
