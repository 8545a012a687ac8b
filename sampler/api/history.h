// What a sampler or pruner knows of a study: its trials as value types, in the order of events.
// Folding the same events gives the same history; rebuilding from stored trials equals folding.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/space/params.h"
#include "common/study/study.h"
#include "common/study/trial.h"
#include "sampler/api/curve.h"

namespace hpo::sampler {

// What memory taught about one configuration. `censored`: the need is more than `bytes` (an OOM at
// that limit); else `bytes` is what it used.
struct MemoryObservation {
  Bytes bytes;
  bool censored = false;
  Bytes limit;
  MemoryPlan plan;
  bool operator==(const MemoryObservation&) const = default;
};

// A trial that reports epochs has this progress after its first one.
inline constexpr int64_t kEpoch = 1'000'000'000;

struct HistoryTrial {
  TrialNumber number;
  ParamMap params;
  TrialState state = TrialState::kRunning;
  std::optional<PruneReason> prune_reason;
  // Objectives in "smaller is better" sign; empty unless completed.
  std::vector<double> losses;
  // First objective by progress, "smaller is better" sign. Progress is the step, or of a trial that
  // reports epochs (`by_epoch`) the epoch in units of 1 / kEpoch.
  Curve intermediate;
  bool by_epoch = false;
  // Of one that reports epochs: what it reported without any, by step, before `epochs_from`, its
  // first step with one. The best of it is its value at epoch 0.
  Curve before_epochs;
  int64_t epochs_from = 0;
  // Its first step at its last epoch, and whether it was seen to report again at its last epoch, as
  // one does that counts whole epochs and reports within them.
  int64_t last_epoch_from = 0;
  bool repeats_epochs = false;
  std::vector<MemoryObservation> memory;
  // How far a completed trial is from what the study's constraints allow; 0: feasible, or not
  // completed.
  double violation = 0.0;
  // By constraint, of a completed trial: how far beyond its limit (ExcessesOf); <= 0: kept.
  std::vector<double> excesses;
  bool budgeted = true;  // false: imported, outside the study's budget
  bool imported = false;
  // The limit of the attempt that ran to the end, where nobody measured what it used; else 0.
  Bytes ran_within;
  bool operator==(const HistoryTrial&) const = default;
};

// COMPLETED or PRUNED.
bool IsFinished(const HistoryTrial& trial);

// COMPLETED, and within the study's constraints: what others are measured by.
bool IsFeasible(const HistoryTrial& trial);

inline constexpr double kWorstLoss = std::numeric_limits<double>::infinity();

// A loss, or the worst one for NaN, which has no place among others.
double NanAsWorst(double loss);

// Pruned for a reason that says nothing of quality.
bool EndedByMemory(const HistoryTrial& trial);

// One event folds into the history. `trial` is the trial's state after it; events of one trial
// replace each other. `sequence` grows by one per event of the study.
struct HistoryEvent {
  int64_t sequence = 0;
  HistoryTrial trial;
};

// First objective at a step, "smaller is better" sign.
struct Report {
  int64_t step = 0;
  int64_t epoch = 0;  // in units of 1 / kEpoch; 0: it names none
  double loss = 0.0;
};
// Of one step the first counts, of one epoch the best.
using Reports = std::vector<Report>;

class History {
 public:
  void Apply(const HistoryEvent& event);
  // The same where a trial that is known has reported, and nothing else of it has changed.
  void ApplyReports(int64_t sequence, TrialNumber trial, const Reports& reports);

  // By number.
  const std::map<TrialNumber, HistoryTrial>& trials() const { return trials_; }
  // Of the last event applied.
  int64_t sequence() const { return sequence_; }
  // COMPLETED and PRUNED trials.
  int64_t num_finished() const { return num_finished_; }
  // Of a trial that reports epochs: the least of the epochs that were new with the last call; above
  // all where none was, and its last one where that is not known.
  int64_t NewestFrom(const HistoryTrial& trial) const;

  // Whatever came with one call.
  friend bool operator==(const History& a, const History& b) {
    return a.trials_ == b.trials_ && a.sequence_ == b.sequence_;
  }

 private:
  std::map<TrialNumber, HistoryTrial> trials_;
  int64_t sequence_ = 0;
  int64_t num_finished_ = 0;
  std::map<TrialNumber, int64_t> newest_from_;
};

// How many trials are in `state`. O(trials).
int64_t NumIn(TrialState state, const History& history);

// A stored trial as history sees it: signs by the study's directions; an objective that is missing
// or not finite counts as worst, an intermediate value that is not finite as NaN; of several
// reports at one step the first. Memory: the use of the attempt that ran to the end; an OOM that
// ended the trial, where the configuration was too big (kinds A and D); the capacity above which it
// waits.
HistoryTrial ToHistory(const Trial& trial, const std::vector<Measurement>& measurements,
                       const std::vector<Objective>& objectives,
                       const std::vector<MetricConstraint>& constraints = {});

// What measurements tell of the objective, as ToHistory takes them.
Reports ReportsOf(const std::vector<Measurement>& measurements, const Objective& objective);

// The least capacity at which `trial` could have run as far as its own observations tell; 0 where
// they tell nothing. An OOM (met or predicted) needs more than its limit, a use what it was; with
// policy kPlan a use counts only at micro-batch 1, as a larger one could have been split further.
Bytes MemoryNeed(const HistoryTrial& trial, MemoryPolicy policy);

// From which capacity on a card is of a larger class than the one that `trial` ran on: an eighth
// more than it had. nullopt where its observations do not tell, or no card is.
std::optional<Bytes> LargerClassThan(const HistoryTrial& trial);

// By how much its need exceeds `capacity`, as a fraction of it; 0 = feasible. Capacity 0: a worker
// of which no limit is known (hpo.minimize on a CPU, without `memory`); there all is feasible but
// what ran out of memory.
double MemoryViolation(const HistoryTrial& trial, Bytes capacity, MemoryPolicy policy);

}  // namespace hpo::sampler
