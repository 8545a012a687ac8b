#include "server/api/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "common/status.h"

namespace hpo {
namespace {

constexpr size_t kTrialsBetweenLooks = 1000;

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
    losses.push_back(std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss);
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

struct Scored {
  Trial trial;
  std::vector<double> losses;
};

// Where in `scored` those stand that none dominates, ascending. A trial is dominated, if at all, by
// one before it in the order of losses, and then by one of the front. Of two objectives the front's
// last one tells: no other has a smaller second loss.
absl::StatusOr<std::vector<size_t>> FindFront(const std::vector<Scored>& scored,
                                              absl::FunctionRef<bool()> cancelled) {
  std::vector<size_t> order(scored.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return scored[a].losses < scored[b].losses; });
  std::vector<size_t> front;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % kTrialsBetweenLooks == 0 && cancelled()) {
      return absl::CancelledError("the caller has left");
    }
    const std::vector<double>& losses = scored[order[i]].losses;
    const bool last_tells = losses.size() == 2 && !front.empty();
    const bool dominated =
        std::any_of(last_tells ? front.end() - 1 : front.begin(), front.end(),
                    [&](size_t other) { return Dominates(scored[other].losses, losses); });
    if (!dominated) front.push_back(order[i]);
  }
  std::sort(front.begin(), front.end());
  return front;
}

}  // namespace

absl::StatusOr<std::vector<Trial>> ParetoFront(std::vector<Trial> completed,
                                               const std::vector<Objective>& objectives,
                                               absl::FunctionRef<bool()> cancelled) {
  std::vector<Scored> scored;
  double least = std::numeric_limits<double>::infinity();
  for (Trial& trial : completed) {
    auto losses = LossesOf(trial, objectives);
    if (!losses) continue;
    least = std::min(least, trial.violation);
    scored.push_back({std::move(trial), *std::move(losses)});
  }
  std::erase_if(scored, [least](const Scored& entry) { return entry.trial.violation > least; });
  HPO_ASSIGN_OR_RETURN(const std::vector<size_t> front, FindFront(scored, cancelled));
  std::vector<Trial> best;
  for (const size_t i : front) best.push_back(std::move(scored[i].trial));
  return best;
}

}  // namespace hpo
