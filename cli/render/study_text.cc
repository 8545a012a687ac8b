// Tested by tests/cli/render/text_test.cc.
#include "cli/render/study_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/client/terminal.h"
#include "cli/render/color.h"
#include "cli/render/table.h"
#include "cli/render/wording.h"
#include "common/study/outcome_text.h"

namespace hpo::cli {
namespace {

constexpr int kStudyNameColumns = 12;
constexpr size_t kMostOfFront = 5;  // trials of a Pareto front that are shown

std::string StateOf(const StudyStatus& study) {
  if (study.spec.objectives.empty() && !study.unreadable.empty()) return "unreadable";
  if (!study.failure.empty()) return "failed";
  if (study.order == StudyOrder::kStop) return study.finished ? "stopped" : "stopping";
  if (study.finished) return "finished";
  if (study.order == StudyOrder::kPause) return "paused";
  if (study.counts.running > 0) return "running";
  return study.waiting_for.empty() ? "active" : "waiting";
}

std::string ObjectivesOf(const StudyStatus& study) {
  return absl::StrJoin(
      study.spec.objectives, ", ", [](std::string* out, const Objective& objective) {
        const bool minimize = objective.direction == Direction::kMinimize;
        absl::StrAppend(out, minimize ? "minimize " : "maximize ", objective.metric);
      });
}

// The limits, then how far the study is in keeping them.
std::string ConstraintsOf(const StudyStatus& study) {
  const std::string limits = absl::StrJoin(
      study.spec.constraints, ", ", [](std::string* out, const MetricConstraint& constraint) {
        out->append(DescribeConstraint(constraint));
      });
  const TrialCounts& counts = study.counts;
  if (study.best_violation > 0.0) {
    return absl::StrCat(limits, "; no trial keeps them yet, ", Hash(*study.best_trial),
                        " is the nearest");
  }
  return absl::StrCat(limits, "; ", counts.infeasible, " of ", counts.completed,
                      " completed do not keep them");
}

std::string CountsOf(const TrialCounts& counts) {
  std::string text = absl::StrCat(counts.completed, " completed, ", counts.pruned, " pruned, ",
                                  counts.failed, " failed");
  if (counts.cancelled > 0) absl::StrAppend(&text, ", ", counts.cancelled, " cancelled");
  absl::StrAppend(&text, ", ", counts.running, " running, ", counts.queued, " queued");
  if (counts.imported > 0) absl::StrAppend(&text, "; ", counts.imported, " imported");
  if (counts.demonstration > 0) {
    absl::StrAppend(&text, "; ", counts.demonstration, " demonstration, counted apart");
  }
  return text;
}

std::string TimeOf(const StudyStatus& study) {
  const std::optional<absl::Duration> limit = study.spec.budget.wall_clock;
  const std::optional<absl::Duration> each = study.spec.budget.trial_wall_clock;
  return absl::StrCat(ShortDuration(study.wall_clock_used),
                      limit ? absl::StrCat(" of ", ShortDuration(*limit)) : "",
                      each ? absl::StrCat(", ", ShortDuration(*each), " a trial at most") : "");
}

std::string ConditionsText(const std::vector<Condition>& conditions) {
  return absl::StrJoin(conditions, " and ", [](std::string* out, const Condition& condition) {
    absl::StrAppend(out, condition.name, " is ",
                    absl::StrJoin(condition.values, " or ",
                                  [](std::string* value_out, const ParamValue& value) {
                                    absl::StrAppend(value_out, ShowParam(value));
                                  }));
  });
}

std::string PriorOf(const PriorStatus& prior) {
  std::string text = absl::StrCat(prior.study, ", ", prior.num_trials, " trials");
  if (prior.num_skipped > 0) {
    absl::StrAppend(&text, "; ", prior.num_skipped, " lie outside this space: ", prior.why_skipped);
  }
  return text;
}

std::string WorkerTable(const std::vector<WorkerStatus>& workers, int width, bool colors) {
  Table table({{"WORKER"}, {"DEVICE"}, {"CAPACITY", Align::kRight}, {"STATE"}});
  for (const WorkerStatus& worker : workers) {
    std::string state = worker.alive ? "idle" : "gone";
    if (worker.alive && worker.trial) {
      state = absl::StrCat("trial ", Hash(worker.trial->number), " of ", worker.trial->study);
    }
    if (worker.drained) absl::StrAppend(&state, ", drained");
    table.AddRow({worker.name, worker.device, OrDash(worker.capacity), state});
  }
  return table.Render(width, colors);
}

// Of each worker that says something, below the table.
std::string NoticesOf(const std::vector<WorkerStatus>& workers) {
  std::string text;
  for (const WorkerStatus& worker : workers) {
    if (worker.notice.empty()) continue;
    absl::StrAppend(&text, Printable(worker.name), ": ", Printable(worker.notice), "\n");
  }
  return text;
}

}  // namespace

std::string RenderWorkers(const std::vector<WorkerStatus>& workers, int width, bool colors) {
  return absl::StrCat(WorkerTable(workers, width, colors), NoticesOf(workers));
}

std::string RenderStudyTable(const std::vector<StudyStatus>& studies, int width, bool colors) {
  Table table({{"STUDY"},
               {.title = "STATE", .color_of = ColorOfState},
               {"TRIALS", Align::kRight},
               {"COMPLETED", Align::kRight},
               {"PRUNED", Align::kRight},
               {"FAILED", Align::kRight},
               {"OOM MET", Align::kRight},
               {"PREDICTED", Align::kRight},
               {"BEST"}});
  for (const StudyStatus& study : studies) {
    const TrialCounts& counts = study.counts;
    table.AddRow({study.spec.name, StateOf(study), DescribeProgress(study),
                  absl::StrCat(counts.completed), absl::StrCat(counts.pruned),
                  absl::StrCat(counts.failed), absl::StrCat(counts.oom_met),
                  absl::StrCat(counts.oom_predicted), DescribeBest(study)});
  }
  return table.Render(width, colors);
}

std::string BestLines(const StudyStatus& study) {
  if (study.front.empty()) return absl::StrCat("best        ", DescribeBest(study), "\n");
  const std::vector<std::string> trials = DescribeFront(study);
  std::string text;
  for (size_t i = 0; i < std::min(trials.size(), kMostOfFront); ++i) {
    absl::StrAppend(&text, i == 0 ? "front       " : "            ", Printable(trials[i]), "\n");
  }
  if (study.best_violation > 0.0) {
    absl::StrAppend(&text, "            no trial is feasible yet; these are the nearest\n");
  }
  if (trials.size() <= kMostOfFront) return text;
  return absl::StrCat(text, "            and ", trials.size() - kMostOfFront,
                      " more: hpo best --study ", Printable(study.spec.name), "\n");
}

std::string StudyText(const StudyStatus& study, int width, bool colors) {
  if (study.spec.objectives.empty() && !study.unreadable.empty()) {
    return absl::StrCat("study       ", Printable(study.spec.name), " (unreadable)\n",
                        "unreadable  ", Printable(study.unreadable), "\n");
  }
  std::string text = absl::StrCat(
      "study       ", Colored(Printable(study.spec.name), Color::kBold, colors), " (",
      Colored(StateOf(study), ColorOfState(StateOf(study)), colors), ")\n", "objective   ",
      Printable(ObjectivesOf(study)), "\n", "trials      ", DescribeProgress(study), ": ",
      CountsOf(study.counts), "\n", "memory      ", DescribeOoms(study.counts), "\n",
      BestLines(study), "time        ", TimeOf(study), "\n");
  if (study.dry_runs.has_value()) {
    absl::StrAppend(&text, "dry runs    ", Printable(DescribeDryRuns(*study.dry_runs)), "\n");
  }
  if (!study.spec.constraints.empty()) {
    absl::StrAppend(&text, "constraints ", Printable(ConstraintsOf(study)), "\n");
  }
  if (study.spec.budget.target) {
    const bool minimize = study.spec.objectives.front().direction == Direction::kMinimize;
    absl::StrAppend(&text, "target      ", Printable(study.spec.objectives.front().metric),
                    minimize ? " at most " : " at least ", ShortNumber(*study.spec.budget.target),
                    "\n");
  }
  if (!study.waiting_for.empty()) {
    absl::StrAppend(&text, study.finished ? "ended       " : "waits       ",
                    Printable(study.waiting_for), "\n");
  }
  absl::StrAppend(&text, FailureText(study), AttributeLines(study.attributes, kStudyNameColumns));
  for (const PriorStatus& prior : study.priors) {
    absl::StrAppend(&text, "warm start  ", Printable(PriorOf(prior)), "\n");
  }
  if (!study.unreadable.empty()) {
    absl::StrAppend(&text, "unreadable  ", Printable(study.unreadable), "\n");
  }
  if (!study.last_proposal.empty()) {
    absl::StrAppend(&text, "proposed    ", Printable(study.last_proposal), "\n");
  }
  if (study.workers.empty()) return text;
  return absl::StrCat(text, "\n", RenderWorkers(study.workers, width, colors));
}

std::string FailureText(const StudyStatus& study) {
  if (study.failure.empty()) return "";
  std::string text;
  for (const absl::string_view line : absl::StrSplit(study.failure, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text, text.empty() ? "failed      " : "            ",
                    Printable(std::string(line)), "\n");
  }
  return text;
}

std::string SpaceTable(const SearchSpace& space, int width, bool colors) {
  Table table({{.title = "PARAMETER"},
               {.title = "VALUES", .wraps = true},
               {.title = "ONLY WHEN", .wraps = true}});
  for (const Parameter& parameter : space.parameters) {
    table.AddRow({parameter.name, FormatDomain(parameter.domain), ConditionsText(parameter.when)});
  }
  if (space.narrowings.empty()) return table.Render(width, colors);
  Table narrowings(
      {{.title = "NARROWED"}, {.title = "TO", .wraps = true}, {.title = "WHEN", .wraps = true}});
  for (const Narrowing& narrowing : space.narrowings) {
    narrowings.AddRow(
        {narrowing.name, FormatDomain(narrowing.domain), ConditionsText(narrowing.when)});
  }
  return absl::StrCat(table.Render(width, colors), "\n", narrowings.Render(width, colors));
}

}  // namespace hpo::cli
