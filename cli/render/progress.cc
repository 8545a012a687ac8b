#include "cli/render/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/client/terminal.h"
#include "cli/render/color.h"
#include "cli/render/wording.h"

namespace hpo::cli {
namespace {

// Of how a trial ended, as one line of news; hpo trial show and hpo trial logs have all of it.
constexpr int kMostColumnsOfEnd = 160;
constexpr size_t kMostNamed = 4;  // running trials that are named one by one

std::string RunningText(const StudyStatus& study, const RunningSteps& running) {
  std::string text = absl::StrCat(study.counts.running, " running");
  if (running.empty() || running.size() > kMostNamed) return text;
  const std::string steps = absl::StrJoin(running, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, Hash(entry.first));
    if (entry.second > 0) absl::StrAppend(out, " step ", entry.second);
  });
  return absl::StrCat(text, " (", steps, ")");
}

}  // namespace

std::optional<absl::Duration> TimeLeft(const StudyStatus& study) {
  std::optional<absl::Duration> left;
  const Budget& budget = study.spec.budget;
  const int64_t finished = study.counts.Finished();
  if (budget.trials && finished > 0) {
    const int64_t rest = std::max<int64_t>(0, *budget.trials - finished);
    left = study.wall_clock_used / finished * rest;
  }
  if (budget.wall_clock) {
    const absl::Duration rest =
        std::max(absl::ZeroDuration(), *budget.wall_clock - study.wall_clock_used);
    left = left ? std::min(*left, rest) : rest;
  }
  return left;
}

std::string ProgressLine(const StudyStatus& study, const RunningSteps& running) {
  const std::optional<int64_t> budget = study.spec.budget.trials;
  const std::optional<absl::Duration> left = TimeLeft(study);
  std::string end = left ? absl::StrCat("time left ", ShortDuration(*left)) : "time left unknown";
  if (study.finished) end = "finished";
  return absl::StrCat(Printable(study.spec.name), " ", study.counts.Finished(),
                      budget ? absl::StrCat("/", *budget) : "", " | ",
                      study.front.empty() ? "best " : "", DescribeBest(study), " | ",
                      RunningText(study, running), " | OOM ", study.counts.oom_met, " met, ",
                      study.counts.oom_predicted, " predicted | ", end);
}

std::string AwaitedLine(const StudyStatus& study, const std::vector<Trial>& running,
                        absl::Time now) {
  std::vector<std::string> parts;
  for (const Trial& trial : running) {
    if (parts.size() == kMostNamed) {
      parts.push_back(absl::StrCat(running.size() - kMostNamed, " more"));
      break;
    }
    std::string part = absl::StrCat("trial ", trial.id.number.value);
    if (trial.started != absl::InfinitePast()) {
      absl::StrAppend(&part, " for ", ShortDuration(now - trial.started));
    }
    if (trial.last_measurement) {
      absl::StrAppend(&part, " (step ", trial.last_measurement->step, ")");
    }
    parts.push_back(std::move(part));
  }
  std::vector<std::string> lines;
  if (!parts.empty()) {
    lines.push_back(absl::StrCat("running: ", absl::StrJoin(parts, ", ")));
    const std::optional<int64_t> budget = study.spec.budget.trials;
    lines.push_back(absl::StrCat(study.counts.Finished(),
                                 budget ? absl::StrCat(" of ", *budget) : "", " trials ended"));
  }
  if (!study.waiting_for.empty()) {
    lines.push_back(absl::StrCat("waits: ", Printable(study.waiting_for)));
  }
  for (const WorkerStatus& worker : study.workers) {
    if (!worker.alive || worker.notice.empty()) continue;
    lines.push_back(absl::StrCat("worker ", Printable(worker.name), " ", Printable(worker.notice)));
  }
  return absl::StrJoin(lines, "; ");
}

std::string FinishedLine(const Trial& trial, const StudyStatus& study, bool colors) {
  const std::string state = DescribeState(trial);
  std::string text = absl::StrCat("trial ", trial.id.number.value, " ",
                                  Colored(state, ColorOfState(state), colors));
  if (trial.demonstration) absl::StrAppend(&text, " (demonstration)");
  absl::StrAppend(&text, ": ", FitTo(Printable(DescribeEnd(trial)), kMostColumnsOfEnd));
  if (trial.started != absl::InfinitePast() && trial.ended != absl::InfinitePast()) {
    absl::StrAppend(&text, " in ", ShortDuration(trial.ended - trial.started));
  }
  if (!study.best_trial) return text;
  if (!study.front.empty()) return absl::StrCat(text, "; ", DescribeBest(study));
  return absl::StrCat(text, "; best is ", Hash(*study.best_trial), " with ",
                      OrDash(study.best_value), study.best_violation > 0.0 ? ", infeasible" : "");
}

}  // namespace hpo::cli
