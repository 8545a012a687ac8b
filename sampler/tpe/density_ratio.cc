#include "sampler/tpe/density_ratio.h"

#include "sampler/numeric/portable_math.h"
#include "sampler/numeric/truncated_normal.h"

namespace hpo::sampler {

void DensityRatio::Refit() {
  below_.Refit();
  below_.PrepareDraws();
  above_.Refit();
}

void DensityRatio::Refit(std::span<const double> weights_below) {
  below_.Refit(weights_below);
  below_.PrepareDraws();
  above_.Refit();
}

std::vector<double> DensityRatio::LogRelative(std::span<const Point> points) const {
  std::vector<double> logs(points.size(), 0.0);
  if (above_.num_observations() == 0) return logs;
  const std::vector<double> below = below_.LogDensities(points, dependence_);
  const std::vector<double> above = above_.LogDensities(points, dependence_);
  const double num_below = static_cast<double>(below_.num_observations());
  const double num_above = static_cast<double>(above_.num_observations());
  const double gamma = num_below / (num_below + num_above);
  for (size_t i = 0; i < logs.size(); ++i) {
    // Where neither density reaches, nothing speaks for or against the point (and not NaN).
    const double log_ratio = below[i] == above[i] ? 0.0 : below[i] - above[i];
    logs[i] = -LogAddExp(Log(gamma), Log1p(-gamma) - log_ratio);
  }
  return logs;
}

}  // namespace hpo::sampler
