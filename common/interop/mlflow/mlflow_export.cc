#include "common/interop/mlflow/mlflow_export.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/space/params.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr char kStudyTag[] = "hpo.study";
constexpr char kKeyTag[] = "hpo.key";
constexpr char kLoggedTag[] = "hpo.logged";
constexpr char kNoteTag[] = "mlflow.note.content";
constexpr char kParentTag[] = "mlflow.parentRunId";  // MLflow's own: shows a run below another

// MLflow's names are letters, digits and _-./: and blanks.
std::string MlflowName(const std::string& name) {
  std::string text = name;
  for (char& c : text) {
    const bool allowed = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         absl::StrContains("_-./: ", absl::string_view(&c, 1));
    if (!allowed) c = '_';
  }
  return text;
}

std::string StatusOf(TrialState state) {
  switch (state) {
    case TrialState::kQueued:
      return "SCHEDULED";
    case TrialState::kRunning:
      return "RUNNING";
    case TrialState::kCompleted:
      return "FINISHED";
    case TrialState::kFailed:
      return "FAILED";
    case TrialState::kPruned:
    case TrialState::kCancelled:
      break;
  }
  return "KILLED";
}

std::string StateText(const Trial& trial) {
  const auto reason = trial.outcome ? PruneReasonOf(*trial.outcome) : std::nullopt;
  return absl::StrCat(Name(trial.state), reason ? absl::StrCat(" (", Name(*reason), ")") : "");
}

// Why it did not complete; empty where it did or has not ended.
std::string WhyEnded(const Trial& trial) {
  if (!trial.outcome) return "";
  if (const auto* failed = std::get_if<Failed>(&*trial.outcome)) return failed->message;
  if (const auto* oom = std::get_if<OutOfMemory>(&*trial.outcome)) return oom->message;
  if (const auto* stopped = std::get_if<StoppedByPruner>(&*trial.outcome)) return stopped->pruner;
  if (const auto* cancelled = std::get_if<Cancelled>(&*trial.outcome)) return cancelled->reason;
  return "";
}

// An out-of-memory end under the names of its parts in Optuna's user attributes.
void AddOomTags(const Trial& trial, std::map<std::string, std::string>& tags) {
  const auto* oom = trial.outcome ? std::get_if<OutOfMemory>(&*trial.outcome) : nullptr;
  if (oom == nullptr) return;
  tags["oom_error"] = "true";
  tags["error_message"] = oom->message;
  if (!oom->traceback.empty()) tags["error_traceback"] = oom->traceback;
}

// MLflow shows a run's note where it shows its own; a tag is a tag of its own there. What would
// hide one of ours gives way to it.
std::map<std::string, std::string> NotedTags(const Attributes& attributes) {
  std::map<std::string, std::string> tags;
  for (const auto& [key, value] : UsersOwn(attributes)) tags[MlflowName(key)] = value;
  for (const std::string& tag : TagsOf(attributes)) tags[MlflowName(tag)] = "true";
  const std::string note = NoteOf(attributes);
  if (!note.empty()) tags[kNoteTag] = note;
  const auto retry = attributes.find(kRetryOfKey);
  if (retry != attributes.end()) tags[kRetryOfKey] = retry->second;
  return tags;
}

void AddAttemptTags(const Trial& trial, std::map<std::string, std::string>& tags) {
  int64_t num_ooms = 0;
  for (const Attempt& attempt : trial.attempts) {
    if (attempt.memory) num_ooms += attempt.memory->num_ooms;
  }
  tags["hpo.ooms"] = absl::StrCat(num_ooms);
  tags["hpo.attempts"] = absl::StrCat(trial.attempts.size());
  if (trial.attempts.empty()) return;
  const Attempt& last = trial.attempts.back();
  tags["hpo.worker"] = last.worker;
  tags["hpo.plan"] = PlanToJson(last.final_plan.value_or(last.plan)).dump();
}

std::map<std::string, std::string> TagsOf(const TrialView& view) {
  const Trial& trial = view.trial;
  std::map<std::string, std::string> tags = NotedTags(trial.attributes);
  tags[kStudyTag] = trial.id.study;
  tags["hpo.trial"] = absl::StrCat(trial.id.number.value);
  tags["hpo.state"] = StateText(trial);
  if (!view.sampler.empty()) tags["hpo.sampler"] = view.sampler;
  if (const std::string why = WhyEnded(trial); !why.empty()) tags["hpo.end"] = why;
  AddOomTags(trial, tags);
  AddAttemptTags(trial, tags);
  return tags;
}

std::vector<MlflowMetric> MetricsOf(const TrialView& view) {
  std::vector<MlflowMetric> metrics;
  for (const Measurement& measurement : view.measurements) {
    for (const auto& [name, value] : measurement.metrics) {
      metrics.push_back({.key = MlflowName(name),
                         .value = value,
                         .step = measurement.step,
                         .time = view.TimeOf(measurement.step)});
    }
  }
  return metrics;
}

// Of the last attempt that told of its memory, in bytes; what is unknown is left out.
std::map<std::string, double> MemoryOf(const Trial& trial) {
  std::map<std::string, double> memory;
  const auto add = [&memory](const char* name, Bytes size) {
    if (size > Bytes{}) memory[name] = static_cast<double>(size.count);
  };
  for (auto attempt = trial.attempts.rbegin(); attempt != trial.attempts.rend(); ++attempt) {
    if (!attempt->memory) continue;
    add("memory.peak_allocated_bytes", attempt->memory->live_peak);
    add("memory.peak_reserved_bytes", attempt->memory->reserved_peak);
    add("memory.peak_device_bytes", attempt->memory->device_peak);
    add("memory.predicted_bytes", attempt->predicted);
    break;
  }
  return memory;
}

// What the end of a trial adds to what was measured last: its memory and its result: another
// step may have been the best.
void AddEnd(const TrialView& view, std::vector<MlflowMetric>& metrics) {
  const Trial& trial = view.trial;
  if (!trial.outcome) return;
  std::map<std::string, double> values = MemoryOf(trial);
  if (const auto* completed = std::get_if<Completed>(&*trial.outcome)) {
    for (const auto& [name, value] : completed->metrics) {
      values[MlflowName("result." + name)] = value;
    }
  }
  const int64_t step = view.measurements.empty() ? 0 : view.measurements.back().step;
  for (const auto& [name, value] : values) {
    metrics.push_back({.key = name, .value = value, .step = step, .time = view.TimeOf(step)});
  }
}

// How many trials ended how, under the names of the metrics in MLflow.
std::map<std::string, double> CountsOf(const StudyStatus& study) {
  const TrialCounts& counts = study.counts;
  std::map<std::string, double> values;
  for (const auto& [name, count] :
       {std::pair("completed_trials", counts.completed), std::pair("pruned_trials", counts.pruned),
        std::pair("failed_trials", counts.failed), std::pair("cancelled_trials", counts.cancelled),
        std::pair("running_trials", counts.running), std::pair("queued_trials", counts.queued),
        std::pair("oom_trials", counts.oom_met + counts.oom_predicted),
        std::pair("oom_recovered_trials", counts.oom_recovered)}) {
    values[name] = static_cast<double>(count);
  }
  if (study.best_value) values["best_value"] = *study.best_value;
  return values;
}

// Leaves out what a run with `logged` has: the same attempt's metrics up to its step.
void DropLogged(const std::string& logged, const std::string& now,
                std::vector<MlflowMetric>& metrics) {
  const std::vector<std::string> before = absl::StrSplit(logged, ':');
  const std::vector<std::string> after = absl::StrSplit(now, ':');
  int64_t step = 0;
  if (before.size() != 2 || before[0] != after[0] || !absl::SimpleAtoi(before[1], &step)) return;
  std::erase_if(metrics, [step](const MlflowMetric& metric) { return metric.step <= step; });
}

}  // namespace

MlflowRunImage ImageOf(const TrialView& view) {
  const Trial& trial = view.trial;
  MlflowRunImage image;
  image.key = absl::StrCat(trial.id.study, "#", trial.id.number.value, "@",
                           absl::ToUnixMicros(trial.created));
  image.name = absl::StrCat(trial.id.study, " #", trial.id.number.value);
  image.status = StatusOf(trial.state);
  const int64_t step = view.measurements.empty() ? -1 : view.measurements.back().step;
  image.logged = absl::StrCat(trial.attempts.size(), ":", step);
  for (const auto& [name, value] : trial.params) {
    image.batch.params[MlflowName(name)] = FormatParam(value);
  }
  image.batch.tags = TagsOf(view);
  image.batch.tags[kKeyTag] = image.key;
  image.batch.metrics = MetricsOf(view);
  return image;
}

absl::Status MlflowExport::Write(const TrialView& view) {
  if (view.trial.started == absl::InfinitePast()) return absl::OkStatus();
  HPO_RETURN_IF_ERROR(FindRuns());
  absl::Status written = WriteImage(view, ImageOf(view));
  // A run may have been made although the answer was lost.
  if (!written.ok()) found_ = false;
  return written;
}

absl::Status MlflowExport::WriteStudy(const StudyStatus& study, absl::Time now) {
  HPO_RETURN_IF_ERROR(FindRuns());
  absl::Status written = WriteCounts(study, now);
  if (!written.ok()) found_ = false;
  return written;
}

absl::Status MlflowExport::FindRuns() {
  if (found_) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(experiment_id_, client_.FindOrCreateExperiment(experiment_));
  HPO_ASSIGN_OR_RETURN(const std::vector<MlflowRun> runs,
                       client_.SearchRuns(experiment_id_, kStudyTag, study_));
  runs_.clear();
  for (const MlflowRun& run : runs) {
    const auto key = run.tags.find(kKeyTag);
    if (key != run.tags.end()) runs_.emplace(key->second, run);
  }
  found_ = true;
  return absl::OkStatus();
}

absl::StatusOr<MlflowRun*> MlflowExport::RunOf(const std::string& key, const std::string& name,
                                               absl::Time start) {
  auto known = runs_.find(key);
  if (known == runs_.end()) {
    const std::map<std::string, std::string> tags = {{kStudyTag, study_}, {kKeyTag, key}};
    HPO_ASSIGN_OR_RETURN(const std::string id,
                         client_.CreateRun(experiment_id_, name, start, tags));
    known = runs_.emplace(key, MlflowRun{.id = id, .tags = tags}).first;
  }
  return &known->second;
}

absl::Status MlflowExport::WriteCounts(const StudyStatus& study, absl::Time now) {
  const std::string key = absl::StrCat(study_, "@", absl::ToUnixMicros(study.created));
  HPO_ASSIGN_OR_RETURN(MlflowRun* const run, RunOf(key, study_, study.created));
  study_run_ = run->id;
  const std::map<std::string, double> values = CountsOf(study);
  MlflowBatch batch;
  for (const auto& [name, value] : values) {
    batch.metrics.push_back(
        {.key = name, .value = value, .step = study.counts.Finished(), .time = now});
  }
  const std::string logged = absl::StrCat(study.finished ? "finished: " : "",
                                          absl::StrJoin(values, " ", absl::PairFormatter("=")));
  batch.tags = NotedTags(study.attributes);
  batch.tags[kLoggedTag] = logged;
  const bool is_known = std::all_of(batch.tags.begin(), batch.tags.end(), [run](const auto& tag) {
    const auto known = run->tags.find(tag.first);
    return known != run->tags.end() && known->second == tag.second;
  });
  if (is_known) return absl::OkStatus();
  HPO_RETURN_IF_ERROR(client_.LogBatch(run->id, batch));
  HPO_RETURN_IF_ERROR(client_.UpdateRun(run->id, study.finished ? "FINISHED" : "RUNNING",
                                        study.finished ? now : absl::InfinitePast()));
  for (const auto& [tag, value] : batch.tags) run->tags[tag] = value;
  return absl::OkStatus();
}

absl::Status MlflowExport::WriteImage(const TrialView& view, MlflowRunImage image) {
  HPO_ASSIGN_OR_RETURN(MlflowRun* const found, RunOf(image.key, image.name, view.trial.started));
  MlflowRun& run = *found;
  DropLogged(run.tags[kLoggedTag], image.logged, image.batch.metrics);
  const bool had_end = run.tags["hpo.state"] == image.batch.tags["hpo.state"];
  if (!had_end) AddEnd(view, image.batch.metrics);
  image.batch.tags[kLoggedTag] = image.logged;
  if (!study_run_.empty()) image.batch.tags[kParentTag] = study_run_;
  HPO_RETURN_IF_ERROR(client_.LogBatch(run.id, image.batch));
  HPO_RETURN_IF_ERROR(client_.UpdateRun(run.id, image.status, view.trial.ended));
  for (const auto& [key, value] : image.batch.tags) run.tags[key] = value;
  return absl::OkStatus();
}

}  // namespace hpo
