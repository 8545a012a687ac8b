#include "worker/agent/attempt/kept_models.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"
#include "worker/agent/attempt/runs_folder.h"
#include "worker/agent/attempt/trainer_job.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kRunningFile[] = ".running";  // no study's name begins with a dot

struct KeptModel {
  double violation = 0.0;
  double value = 0.0;
  std::string model_path;
};

absl::StatusOr<KeptModel> ModelFromJson(const nlohmann::json& json) {
  KeptModel model;
  JsonReader reader(json, "");
  double violation = 0.0;
  if (reader.Has("violation")) reader.Required("violation", violation);
  reader.Required("value", model.value);
  reader.Required("model_path", model.model_path);
  HPO_RETURN_IF_ERROR(reader.status());
  // An infinite one is written as null.
  model.violation = std::isnan(violation) ? std::numeric_limits<double>::infinity() : violation;
  return model;
}

// Best first. A record of one model alone, as it once was, is read as well; a broken one as none.
std::vector<KeptModel> ReadKept(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return {};
  const absl::StatusOr<nlohmann::json> json = ParseJson(*text);
  if (!json.ok()) return {};
  const nlohmann::json models = json->is_array() ? *json : nlohmann::json::array({*json});
  return ArrayFromJson(models, ModelFromJson).value_or(std::vector<KeptModel>());
}

// Leaves the old one or the new one, also where the disk is full.
void WriteKept(const std::string& path, const std::vector<KeptModel>& models) {
  nlohmann::json json = nlohmann::json::array();
  for (const KeptModel& model : models) {
    json.push_back(
        {{"violation", model.violation}, {"value", model.value}, {"model_path", model.model_path}});
  }
  if (const absl::Status written = WriteFileAtomically(path, DumpJson(json)); !written.ok()) {
    spdlog::warn("which models are the best cannot be recorded: {}",
                 std::string(written.message()));
  }
}

bool Better(const KeptModel& a, const KeptModel& b, Direction direction) {
  if (a.violation != b.violation) return a.violation < b.violation;
  return direction == Direction::kMaximize ? a.value > b.value : a.value < b.value;
}

bool IsInside(const fs::path& folder, const fs::path& path) {
  const fs::path inner = fs::weakly_canonical(path);
  const fs::path outer = fs::weakly_canonical(folder);
  const auto [outer_end, inner_at] =
      std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return outer_end == outer.end() && inner_at != inner.end();
}

}  // namespace

void KeptModels::Settle(const std::string& study, const std::string& attempt_folder,
                        const TrialOutcome& outcome, const ModelRank& rank) {
  const auto* completed = std::get_if<Completed>(&outcome);
  if (completed == nullptr) {
    Discard(attempt_folder);
  } else {
    SettleAmong(RecordPath(study, "best.json"), completed->metrics, completed->model_path, rank);
  }
}

void KeptModels::SettleOvertime(const std::string& study, const Metrics& metrics,
                                const std::string& model_path, const ModelRank& rank) {
  SettleAmong(RecordPath(study, "time_limit.json"), metrics, model_path, rank);
}

void KeptModels::SettleEnd(const TrialId& trial, const std::string& attempt_folder,
                           const TrialOutcome& outcome, const std::string& best_path,
                           const ModelRank& rank) {
  const auto* stopped = std::get_if<StoppedByPruner>(&outcome);
  if (stopped == nullptr || stopped->pruner != kTimeLimitPruner) {
    Settle(trial.study, attempt_folder, outcome, rank);
    return;
  }
  SettleOvertime(trial.study, stopped->metrics, best_path, rank);
  spdlog::info("trial #{} has used its time; its best weights: {}", trial.number.value,
               best_path.empty() ? "none" : best_path);
}

std::string KeptModels::RecordPath(const std::string& study, const char* name) const {
  return (fs::path(runs_folder_) / StudyFolder(study) / name).string();
}

void KeptModels::Discard(const std::string& attempt_folder) {
  if (!num_kept_) return;
  std::error_code error;
  std::vector<fs::path> useless;
  for (const fs::directory_entry& entry : fs::directory_iterator(attempt_folder, error)) {
    if (entry.path().filename() != kTrainerLog) useless.push_back(entry.path());
  }
  for (const fs::path& path : useless) {
    Remove(path.string());
  }
}

std::string KeptModels::FolderOf(const LeaseRef& lease) const {
  return (fs::path(runs_folder_) / AttemptFolder(lease)).string();
}

void KeptModels::Await(const Assignment& assignment, const AttemptResult& result) {
  Ended();
  unsettled_.emplace(FolderOf(assignment.lease), std::pair(assignment, result));
}

void KeptModels::TakeAnswer(const LeaseRef& lease, const absl::StatusOr<FinishResult>& answer) {
  const std::string folder = FolderOf(lease);
  const auto unsettled = unsettled_.extract(folder);
  const bool superseded = answer.ok() ? !answer->stored : absl::IsAborted(answer.status());
  if (superseded || (!unsettled.empty() && unsettled.mapped().first.demonstration)) {
    Discard(folder);
  } else if (!unsettled.empty()) {
    const auto& [assignment, result] = unsettled.mapped();
    SettleEnd(lease.trial, folder, result.finish.outcome, result.best_path,
              {assignment.task.objective, assignment.constraints});
  }
}

void KeptModels::Begun(const std::string& attempt_folder) const {
  const absl::Status written = WriteFileAtomically(RunningPath(), attempt_folder);
  if (!written.ok()) spdlog::debug("running attempt: {}", std::string(written.message()));
}

void KeptModels::Ended() const {
  std::error_code error;
  fs::remove(RunningPath(), error);
}

void KeptModels::DiscardInterrupted(const std::vector<std::string>& owed) {
  const absl::StatusOr<std::string> folder = ReadFile(RunningPath());
  if (!folder.ok()) return;
  if (std::find(owed.begin(), owed.end(), *folder) == owed.end()) Discard(*folder);
  Ended();
}

std::string KeptModels::RunningPath() const {
  return (fs::path(runs_folder_) / kRunningFile).string();
}

void KeptModels::SettleAmong(const std::string& record, const Metrics& metrics,
                             const std::string& model_path, const ModelRank& rank) {
  const auto metric = metrics.find(rank.objective.metric);
  if (!num_kept_ || model_path.empty() || metric == metrics.end() ||
      !std::isfinite(metric->second)) {
    return;
  }
  std::vector<KeptModel> models = ReadKept(record);
  std::erase_if(models, [&](const KeptModel& model) { return model.model_path == model_path; });
  const KeptModel settled{.violation = ViolationOf(rank.constraints, metrics),
                          .value = metric->second,
                          .model_path = model_path};
  const auto place = std::find_if(models.begin(), models.end(), [&](const KeptModel& model) {
    return Better(settled, model, rank.objective.direction);
  });
  models.insert(place, settled);
  std::vector<KeptModel> surplus;
  while (models.size() > static_cast<size_t>(*num_kept_)) {
    surplus.push_back(std::move(models.back()));
    models.pop_back();
  }
  WriteKept(record, models);
  std::error_code error;
  for (const KeptModel& model : surplus) {
    // An attempt's whole folder has its log, which stays.
    if (fs::exists(fs::path(model.model_path) / kTrainerLog, error)) {
      Discard(model.model_path);
    } else {
      Remove(model.model_path);
    }
  }
}

void KeptModels::Remove(const std::string& path) const {
  if (!IsInside(runs_folder_, path)) return;
  std::error_code error;
  fs::remove_all(path, error);
  if (error) {
    spdlog::warn("cannot remove {}: {}", path, error.message());
  }
}

}  // namespace hpo::agent
