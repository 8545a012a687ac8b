// A study as people look at it: how far it is, what is best, who works on it. Plain values, filled
// by server/api and shown by the CLI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/study/attributes.h"
#include "common/study/study.h"

namespace hpo {

// How StudyStatus::waiting_for begins where trials have had all that the space has.
constexpr char kSpaceUsedUp[] = "every configuration of the space has been tried";
// The same where its budget is used up by failures.
constexpr char kAllFailed[] = "all trials of the study have failed";

// Demonstration trials are counted in `demonstration` alone, imported ones outside the budget in
// `imported` alone.
struct TrialCounts {
  int64_t queued = 0;
  int64_t running = 0;
  int64_t completed = 0;
  int64_t pruned = 0;
  int64_t failed = 0;
  int64_t cancelled = 0;
  int64_t oom_met = 0;
  int64_t oom_predicted = 0;
  int64_t oom_recovered = 0;
  int64_t demonstration = 0;
  int64_t imported = 0;
  int64_t infeasible = 0;  // of the completed ones: those that violate a constraint
  bool operator==(const TrialCounts&) const = default;

  int64_t Finished() const { return completed + pruned + failed + cancelled; }
};

// What people want of a study: that it hands out trials; that it hands out none, while workers
// wait; or that it is over as soon as nothing runs.
enum class StudyOrder { kRun, kPause, kStop };

// "RUN", "PAUSE", "STOP".
absl::string_view Name(StudyOrder order);

struct WorkerStatus {
  std::string name;
  std::string device;
  Bytes capacity;
  bool alive = false;
  std::optional<TrialId> trial;
  absl::Time last_heartbeat = absl::InfinitePast();
  std::string notice;    // what people should know of it; empty: nothing
  bool drained = false;  // it gets no more trials (hpo worker drain)
  // Of its trial, by its last heartbeat; 0 or empty: nothing is known.
  Bytes allocated;
  Bytes reserved;
  int64_t step = 0;
  std::string stage;
  absl::Time trial_started = absl::InfinitePast();
  std::string idle_because;  // why it has no trial; empty: it has one, or has not asked
  int64_t gpus = 1;          // that each of its trials takes
  bool operator==(const WorkerStatus&) const = default;
};

// What of an earlier study a warm start takes.
struct PriorStatus {
  std::string study;
  int64_t num_trials = 0;   // that count
  int64_t num_skipped = 0;  // completed ones that are no configuration of the new study's space
  std::string why_skipped;  // of the first of those
  bool operator==(const PriorStatus&) const = default;
};

// What the dry runs of a study's configurations came to (docs/dry-run.md, "In studies").
struct DryRunCounts {
  int64_t made = 0;
  int64_t refused = 0;  // configurations that do not fit, and did not run
  int64_t uncertain = 0;
  int64_t failed = 0;
  absl::Duration took;  // of a processor core
  // GPU time that the refused configurations would have taken: of each one the median time from a
  // start to an out-of-memory error, or, where there was none, to the first measurement.
  absl::Duration saved;
  // Which workers make none any more, and why; else why the last one that failed did; empty: none.
  std::string trouble;
  bool operator==(const DryRunCounts&) const = default;
};

// What the time of workers went into, of attempts that have ended; by the wall clock. A trial that
// was preempted continues from what it saved.
struct TimeByUse {
  absl::Duration useful;         // completed
  absl::Duration out_of_memory;  // met, whether or not the trial ran again
  absl::Duration pruned;
  absl::Duration failed;
  absl::Duration cancelled;
  absl::Duration preempted;  // given back
  absl::Duration lost;       // with the worker, or to a newer attempt
  bool operator==(const TimeByUse&) const = default;
};

// A trial of the Pareto front, with its value of each objective in the study's order.
struct FrontTrial {
  TrialNumber number;
  std::vector<double> values;
  bool operator==(const FrontTrial&) const = default;
};

struct StudyStatus {
  StudySpec spec;
  bool finished = false;
  StudyOrder order = StudyOrder::kRun;
  std::string failure;  // why failures ended it, and what the last one said; empty: they have not
  TrialCounts counts;
  std::optional<TrialNumber> best_trial;
  std::optional<double> best_value;
  double best_violation = 0.0;  // Trial::violation; above 0 where no trial is feasible yet
  // Of several objectives; empty also where nobody asked for it (cli/client/client.h).
  std::vector<FrontTrial> front;
  absl::Duration wall_clock_used;
  std::vector<WorkerStatus> workers;
  std::string waiting_for;  // why nothing runs, or who idles, and what helps; why it ended early
  // Its live workers have asked in vain, and get nothing unless somebody intervenes: waiting_for
  // says what.
  bool blocked = false;
  // Trials that further workers could be given now; nullopt: no number bounds them, or an older
  // server does not tell.
  std::optional<int64_t> runnable;
  std::vector<PriorStatus> priors;
  std::optional<DryRunCounts> dry_runs;  // nullopt: there were none
  std::optional<TimeByUse> time_by_use;  // nullopt: no attempt has ended, or nobody tells
  // Who proposed the latest trial that was proposed, and why (Trial::sampler); told with priors.
  std::string last_proposal;
  Attributes attributes;
  std::string unreadable;  // which of its stored rows cannot be read and are left out; empty: none
  absl::Time created = absl::InfinitePast();
  int64_t sequence = 0;  // of its last change; a watch may go on from here
  bool operator==(const StudyStatus&) const = default;
};

}  // namespace hpo
