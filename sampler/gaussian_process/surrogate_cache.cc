#include "sampler/gaussian_process/surrogate_cache.h"

#include "sampler/gaussian_process/hyperparameters.h"

namespace hpo {

Posterior SurrogateCache::Get(const LabelledPoints& fitted, const LabelledPoints& observed) {
  const absl::MutexLock lock(&mutex_);
  if (!entry_.has_value() || !(entry_->fitted == fitted)) {
    KernelParameters kernel = FitHyperparameters(fitted.points, fitted.values, DefaultPrior());
    entry_.emplace(Entry{fitted, Posterior(std::move(kernel), observed.points.num_axes())});
  }
  entry_->posterior.SetPoints(observed.points);
  entry_->posterior.SetTargets(observed.values);
  return entry_->posterior;
}

}  // namespace hpo
