#include "sampler/gp/prior_trend.h"

#include <algorithm>

#include "sampler/gp/surrogate/loss_scale.h"

namespace hpo::sampler {
namespace {

// Of what a prior leaves, where it leaves nothing.
constexpr double kLeastDeviation = 1e-6;

std::vector<double> MeansAt(const Posterior& posterior, const LabelledPoints& observed) {
  std::vector<double> means;
  for (size_t i = 0; i < observed.values.size(); ++i) {
    means.push_back(posterior.PredictMean(observed.points.Point(i), nullptr));
  }
  return means;
}

}  // namespace

double Trend::At(std::span<const double> x, std::vector<double>* slopes) const {
  const double mean = posterior.PredictMean(x, slopes);
  if (slopes != nullptr) {
    for (double& slope : *slopes) slope *= weight;
  }
  return weight * mean;
}

std::optional<Trend> ChooseTrend(const std::vector<std::optional<Posterior>>& priors,
                                 const LabelledPoints& fitted) {
  std::optional<Trend> best;
  for (size_t i = 0; i < priors.size(); ++i) {
    if (!priors[i].has_value()) continue;
    std::vector<double> means = MeansAt(*priors[i], fitted);
    const double worth = PriorWorth(means, fitted.values);
    if (!(worth > (best.has_value() ? best->vote.worth : 0.0))) continue;
    const double deviation = Standardize(means);
    if (!(deviation > kLeastDeviation)) continue;
    best.emplace(Trend{*priors[i], worth / deviation, {i, worth}});
  }
  return best;
}

double TakeOff(const Trend& trend, LabelledPoints& observed) {
  for (size_t i = 0; i < observed.values.size(); ++i) {
    observed.values[i] -= trend.At(observed.points.Point(i), nullptr);
  }
  return std::max(Standardize(observed.values), kLeastDeviation);
}

}  // namespace hpo::sampler
