#include "sampler/density_ratio.h"

#include <cmath>
#include <utility>
#include <vector>

#include "common/status.h"
#include "sampler/truncated_normal.h"

namespace hpo {
namespace {

absl::StatusOr<ParzenEstimator> FitDensity(const ModelSpace& space,
                                           const std::vector<const HistoryTrial*>& trials) {
  std::vector<Point> points;
  points.reserve(trials.size());
  for (const HistoryTrial* trial : trials) points.push_back(space.Encode(trial->params));
  return ParzenEstimator::Create(space.axes(), points, ParzenOptions{});
}

}  // namespace

absl::StatusOr<DensityRatio> DensityRatio::Fit(const ModelSpace& space, const TrialSplit& split,
                                               Dependence dependence) {
  HPO_ASSIGN_OR_RETURN(ParzenEstimator below, FitDensity(space, split.below));
  HPO_ASSIGN_OR_RETURN(ParzenEstimator above, FitDensity(space, split.above));
  const double num_below = static_cast<double>(split.below.size());
  const double num_above = static_cast<double>(split.above.size());
  const double gamma = split.above.empty() ? 1.0 : num_below / (num_below + num_above);
  return DensityRatio(space, std::move(below), std::move(above), gamma, dependence);
}

DensityRatio::DensityRatio(const ModelSpace& space, ParzenEstimator below, ParzenEstimator above,
                           double gamma, Dependence dependence)
    : space_(&space),
      below_(std::move(below)),
      above_(std::move(above)),
      gamma_(gamma),
      dependence_(dependence) {}

double DensityRatio::LogRatio(const ParamMap& params) const {
  const Point point = space_->Encode(params);
  const auto log_density = [&](const ParzenEstimator& density) {
    double log = 0.0;
    if (dependence_ != Dependence::kIndependent) log += density.LogDensity(point);
    if (dependence_ != Dependence::kJoint) log += density.LogProductOfMarginals(point);
    return log;
  };
  const double log_below = log_density(below_);
  const double log_above = log_density(above_);
  // Neither density reaches here: nothing speaks for or against it (and not NaN).
  if (log_below == log_above) return 0.0;
  return log_below - log_above;
}

double DensityRatio::LogRelative(const ParamMap& params) const {
  if (gamma_ >= 1.0) return 0.0;
  return -LogAddExp(std::log(gamma_), std::log1p(-gamma_) - LogRatio(params));
}

}  // namespace hpo
