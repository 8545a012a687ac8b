#include "server/api/pareto.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "common/base/status.h"
#include "sampler/api/history.h"
#include "sampler/numeric/non_domination.h"

namespace hpo::server {
namespace {

// Smaller is better; nullopt when a metric is missing.
std::optional<std::vector<double>> LossesOf(const Trial& trial,
                                            const std::vector<Objective>& objectives) {
  const Completed* completed = trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
  if (completed == nullptr) return std::nullopt;
  std::vector<double> losses;
  for (const Objective& objective : objectives) {
    const auto found = completed->metrics.find(objective.metric);
    if (found == completed->metrics.end()) return std::nullopt;
    const double loss =
        objective.direction == Direction::kMaximize ? -found->second : found->second;
    losses.push_back(sampler::NanAsWorst(loss));
  }
  return losses;
}

}  // namespace

absl::StatusOr<std::vector<Trial>> ParetoFront(std::vector<Trial> completed,
                                               const std::vector<Objective>& objectives,
                                               absl::FunctionRef<bool()> cancelled) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::pair<Trial, std::vector<double>>> scored;
  for (Trial& trial : completed) {
    auto losses = LossesOf(trial, objectives);
    if (!losses) continue;
    least = std::min(least, trial.violation);
    scored.emplace_back(std::move(trial), *std::move(losses));
  }
  std::vector<Trial> trials;
  std::vector<std::vector<double>> points;
  for (auto& [trial, losses] : scored) {
    if (trial.violation > least) continue;
    trials.push_back(std::move(trial));
    points.push_back(std::move(losses));
  }
  HPO_ASSIGN_OR_RETURN(const std::vector<size_t> front,
                       sampler::UndominatedPoints(points, cancelled));
  std::vector<Trial> best;
  for (const size_t i : front) best.push_back(std::move(trials[i]));
  return best;
}

}  // namespace hpo::server
