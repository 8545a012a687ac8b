#include "sampler/api/progress.h"

#include <algorithm>
#include <cmath>

namespace hpo::sampler {
namespace {

using Losses = std::vector<double>;

bool AtLeastAsGood(const Losses& a, const Losses& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
  }
  return true;
}

// Whether `losses` improve on `best`, the losses that no other is as good as; they join it.
bool Improve(const Losses& losses, std::vector<Losses>& best) {
  const bool finite =
      std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  if (losses.empty() || !finite) return false;
  for (const Losses& other : best) {
    if (AtLeastAsGood(other, losses)) return false;
  }
  std::erase_if(best, [&](const Losses& other) { return AtLeastAsGood(losses, other); });
  best.push_back(losses);
  return true;
}

}  // namespace

bool Progress::Improves(const HistoryTrial& trial) {
  if (trial.state != TrialState::kCompleted) return false;
  if (IsFeasible(trial)) return Improve(trial.losses, best_);
  if (!best_.empty() || !(trial.violation < least_violation_)) return false;
  least_violation_ = trial.violation;
  return true;
}

}  // namespace hpo::sampler
