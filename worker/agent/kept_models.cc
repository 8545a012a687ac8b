#include "worker/agent/kept_models.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "common/json_reader.h"
#include "common/read_file.h"
#include "spdlog/spdlog.h"
#include "worker/agent/trainer_job.h"

namespace hpo {
namespace {

namespace fs = std::filesystem;

constexpr char kLogFile[] = "trainer.log";

struct BestModel {
  double value = 0.0;
  std::string model_path;
};

std::optional<BestModel> ReadBest(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<nlohmann::json> json = ParseJson(*text);
  if (!json.ok()) return std::nullopt;
  BestModel best;
  JsonReader reader(*json, "");
  reader.Required("value", best.value);
  reader.Required("model_path", best.model_path);
  if (!reader.status().ok()) return std::nullopt;
  return best;
}

// By rename, so that a crash leaves the old one or the new one.
void WriteBest(const std::string& path, const BestModel& best) {
  const std::string temporary = path + ".new";
  std::ofstream(temporary) << DumpJson({{"value", best.value}, {"model_path", best.model_path}});
  std::error_code error;
  fs::rename(temporary, path, error);
}

bool Better(double a, double b, Direction direction) {
  return direction == Direction::kMaximize ? a > b : a < b;
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
                        const TrialOutcome& outcome, const Objective& objective) {
  const auto* completed = std::get_if<Completed>(&outcome);
  if (completed == nullptr) {
    Discard(attempt_folder);
  } else if (!keep_all_) {
    SettleCompleted(study, *completed, objective);
  }
}

void KeptModels::Discard(const std::string& attempt_folder) {
  if (keep_all_) return;
  std::error_code error;
  std::vector<fs::path> useless;
  for (const fs::directory_entry& entry : fs::directory_iterator(attempt_folder, error)) {
    if (entry.path().filename() != kLogFile) useless.push_back(entry.path());
  }
  for (const fs::path& path : useless) {
    Remove(path.string());
  }
}

void KeptModels::SettleCompleted(const std::string& study, const Completed& completed,
                                 const Objective& objective) {
  const auto metric = completed.metrics.find(objective.metric);
  if (completed.model_path.empty() || metric == completed.metrics.end() ||
      !std::isfinite(metric->second)) {
    return;
  }
  const std::string record = (fs::path(runs_folder_) / StudyFolder(study) / "best.json").string();
  const std::optional<BestModel> best = ReadBest(record);
  if (best && !Better(metric->second, best->value, objective.direction)) {
    Remove(completed.model_path);
    return;
  }
  WriteBest(record, {.value = metric->second, .model_path = completed.model_path});
  if (best && best->model_path != completed.model_path) Remove(best->model_path);
}

void KeptModels::Remove(const std::string& path) const {
  if (!IsInside(runs_folder_, path)) return;
  std::error_code error;
  fs::remove_all(path, error);
  if (error) {
    spdlog::warn("cannot remove {}: {}", path, error.message());
  }
}

}  // namespace hpo
