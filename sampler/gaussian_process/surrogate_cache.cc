#include "sampler/gaussian_process/surrogate_cache.h"

#include "sampler/gaussian_process/hyperparameters.h"

namespace hpo {

Posterior SurrogateCache::Get(const LabelledPoints& fitted, const LabelledPoints& observed,
                              double* log_posterior) {
  const absl::MutexLock lock(&mutex_);
  if (!entry_.has_value() || !(entry_->fitted == fitted)) {
    double value = 0.0;
    KernelParameters kernel =
        FitHyperparameters(fitted.points, fitted.values, DefaultPrior(), &value);
    entry_.emplace(Entry{fitted, Posterior(std::move(kernel), observed.points.num_axes()), value});
  }
  entry_->posterior.SetPoints(observed.points);
  entry_->posterior.SetTargets(observed.values);
  if (log_posterior != nullptr) *log_posterior = entry_->log_posterior;
  return entry_->posterior;
}

}  // namespace hpo
