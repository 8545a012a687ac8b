#include "server/http/metrics.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace hpo::server {
namespace {

using Labels = std::initializer_list<std::pair<absl::string_view, absl::string_view>>;

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.17g", value);
}

// All samples of one name, after what it means.
class Family {
 public:
  Family(absl::string_view name, absl::string_view help) : name_(name) {
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " gauge\n");
  }

  void Add(const Labels& labels, double value) {
    absl::StrAppend(&text_, name_);
    absl::string_view before = "{";
    for (const auto& [label, said] : labels) {
      const std::string escaped =
          absl::StrReplaceAll(said, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
      absl::StrAppend(&text_, before, label, "=\"", escaped, "\"");
      before = ",";
    }
    absl::StrAppend(&text_, labels.size() == 0 ? " " : "} ", Number(value), "\n");
  }

  const std::string& text() const { return text_; }

 private:
  const std::string name_;
  std::string text_;
};

std::string ServerText(const ServerStatus& server) {
  Family build("hpo_build_info", "Always 1.");
  build.Add({{"version", server.version}}, 1);
  Family usable("hpo_database_usable", "0 while the server can neither store nor read.");
  usable.Add({}, server.trouble.empty() ? 1 : 0);
  Family damaged("hpo_database_damaged", "1 where SQLite found damage when the server started.");
  damaged.Add({}, server.damage.empty() ? 0 : 1);
  Family starts("hpo_server_starts", "How often a server has started on this database.");
  starts.Add({}, static_cast<double>(server.epoch));
  return absl::StrCat(build.text(), usable.text(), damaged.text(), starts.text());
}

void AddTrials(const StudyStatus& study, Family& trials) {
  const TrialCounts& counts = study.counts;
  for (const auto& [state, count] :
       {std::pair("queued", counts.queued), std::pair("running", counts.running),
        std::pair("completed", counts.completed), std::pair("pruned", counts.pruned),
        std::pair("failed", counts.failed), std::pair("cancelled", counts.cancelled)}) {
    trials.Add({{"study", study.spec.name}, {"state", state}}, static_cast<double>(count));
  }
}

void AddOutOfMemory(const StudyStatus& study, Family& out_of_memory) {
  const TrialCounts& counts = study.counts;
  for (const auto& [how, count] :
       {std::pair("met", counts.oom_met), std::pair("predicted", counts.oom_predicted),
        std::pair("recovered", counts.oom_recovered)}) {
    out_of_memory.Add({{"study", study.spec.name}, {"how", how}}, static_cast<double>(count));
  }
}

void AddWorkers(const StudyStatus& study, Family& workers) {
  int busy = 0;
  int idle = 0;
  int gone = 0;
  for (const WorkerStatus& worker : study.workers) {
    ++(!worker.alive ? gone : worker.trial ? busy : idle);
  }
  for (const auto& [state, count] :
       {std::pair("busy", busy), std::pair("idle", idle), std::pair("gone", gone)}) {
    workers.Add({{"study", study.spec.name}, {"state", state}}, count);
  }
}

void AddDryRuns(const StudyStatus& study, Family& dry_runs, Family& saved) {
  const DryRunCounts& counts = *study.dry_runs;
  const int64_t fitted = counts.made - counts.refused - counts.uncertain - counts.failed;
  for (const auto& [result, count] :
       {std::pair("fits", fitted), std::pair("does_not_fit", counts.refused),
        std::pair("uncertain", counts.uncertain), std::pair("failed", counts.failed)}) {
    dry_runs.Add({{"study", study.spec.name}, {"result", result}}, static_cast<double>(count));
  }
  saved.Add({{"study", study.spec.name}}, absl::ToDoubleSeconds(counts.saved));
}

void AddTime(const StudyStatus& study, Family& time) {
  const TimeByUse uses = study.time_by_use.value_or(TimeByUse());
  for (const auto& [use, spent] :
       {std::pair("useful", uses.useful), std::pair("out_of_memory", uses.out_of_memory),
        std::pair("pruned", uses.pruned), std::pair("failed", uses.failed),
        std::pair("cancelled", uses.cancelled), std::pair("preempted", uses.preempted),
        std::pair("lost", uses.lost)}) {
    time.Add({{"study", study.spec.name}, {"use", use}}, absl::ToDoubleSeconds(spent));
  }
}

std::string StudiesText(const std::vector<StudyStatus>& studies) {
  Family trials("hpo_trials", "Trials by state.");
  Family out_of_memory("hpo_trials_out_of_memory",
                       "Trials that ran out of memory, would have, or completed all the same.");
  Family workers("hpo_workers", "Workers that can run trials of the study.");
  Family best("hpo_study_best_value", "The objective of the best feasible trial.");
  Family used("hpo_study_wall_clock_seconds", "Wall clock used of the study's budget.");
  Family dry_runs("hpo_dry_runs", "Dry runs of the study's configurations by result.");
  Family saved("hpo_dry_runs_saved_gpu_seconds",
               "GPU time that configurations which do not fit would have taken, an estimate.");
  Family time("hpo_gpu_seconds", "Time of GPUs by what it went into, of attempts that ended.");
  Family finished("hpo_study_finished", "1 once the study hands out no more trials.");
  Family runnable("hpo_trials_runnable",
                  "Trials that further workers could be given now; +Inf where no number bounds "
                  "them.");
  Family failed("hpo_study_failed", "1 where failures ended the study.");
  for (const StudyStatus& study : studies) {
    const std::string& name = study.spec.name;
    AddTrials(study, trials);
    AddOutOfMemory(study, out_of_memory);
    AddWorkers(study, workers);
    const bool has_best = study.best_value && study.best_violation <= 0.0;
    if (has_best) best.Add({{"study", name}}, *study.best_value);
    used.Add({{"study", name}}, absl::ToDoubleSeconds(study.wall_clock_used));
    AddTime(study, time);
    if (study.dry_runs.has_value()) AddDryRuns(study, dry_runs, saved);
    finished.Add({{"study", name}}, study.finished ? 1 : 0);
    constexpr double kUnbounded = std::numeric_limits<double>::infinity();
    runnable.Add({{"study", name}},
                 study.runnable ? static_cast<double>(*study.runnable) : kUnbounded);
    failed.Add({{"study", name}}, study.failure.empty() ? 0 : 1);
  }
  return absl::StrCat(trials.text(), out_of_memory.text(), workers.text(), best.text(), used.text(),
                      time.text(), dry_runs.text(), saved.text(), finished.text(), runnable.text(),
                      failed.text());
}

}  // namespace

std::string MetricsText(const ServerStatus& server, const std::vector<StudyStatus>& studies) {
  return ServerText(server) + StudiesText(studies);
}

}  // namespace hpo::server
