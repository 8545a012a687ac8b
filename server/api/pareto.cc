#include "server/api/pareto.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

namespace hpo {
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
    losses.push_back(objective.direction == Direction::kMaximize ? -found->second : found->second);
  }
  return losses;
}

bool Dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

}  // namespace

std::vector<Trial> ParetoFront(std::vector<Trial> completed,
                               const std::vector<Objective>& objectives) {
  std::vector<std::pair<Trial, std::vector<double>>> scored;
  for (Trial& trial : completed) {
    if (auto losses = LossesOf(trial, objectives)) {
      scored.emplace_back(std::move(trial), *std::move(losses));
    }
  }
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [trial, losses] : scored) least = std::min(least, trial.violation);
  std::erase_if(scored, [least](const auto& entry) { return entry.first.violation > least; });
  std::vector<Trial> front;
  for (const auto& entry : scored) {
    const bool dominated = std::any_of(scored.begin(), scored.end(), [&](const auto& other) {
      return Dominates(other.second, entry.second);
    });
    if (!dominated) front.push_back(entry.first);
  }
  return front;
}

}  // namespace hpo
