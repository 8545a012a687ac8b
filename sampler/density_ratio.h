// A pair of Parzen densities, of what is sought (below) and what is to be avoided (above), and how
// strongly they speak for a point. Immutable; safe to share between threads.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "sampler/history.h"
#include "sampler/model_space.h"
#include "sampler/parzen_estimator.h"
#include "sampler/trial_split.h"

namespace hpo {

// How the axes go together in a density: as one joint mixture, as the product of its marginals, or
// as the product of both, which sees what depends on several axes and, with few observations of
// many axes, what depends on one.
enum class Dependence { kJoint, kIndependent, kBoth };

class DensityRatio {
 public:
  // Densities of both sides of `split` over the axes of `space`, which must outlive the result.
  static absl::StatusOr<DensityRatio> Fit(const ModelSpace& space, const TrialSplit& split,
                                          Dependence dependence);

  // Natural log of r = 1 / (gamma + (1 - gamma) * above / below); larger is better, 0 when nothing
  // is to be avoided. -infinity where only `above` has mass; 0 where neither has.
  double LogRelative(const ParamMap& params) const;

  // A configuration from the density of what is sought; nullopt as ModelSpace::Draw.
  std::optional<ParamMap> Draw(Rng& rng) const { return space_->Draw(below_, rng); }

 private:
  DensityRatio(const ModelSpace& space, ParzenEstimator below, ParzenEstimator above, double gamma,
               Dependence dependence);

  // Natural log of below / above.
  double LogRatio(const ParamMap& params) const;

  const ModelSpace* space_;
  ParzenEstimator below_;
  ParzenEstimator above_;
  double gamma_;
  Dependence dependence_;
};

}  // namespace hpo
