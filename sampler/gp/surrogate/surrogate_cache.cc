#include "sampler/gp/surrogate/surrogate_cache.h"

#include <utility>

namespace hpo::sampler {

Posterior SurrogateCache::Get(const LabelledPoints& fitted, const LabelledPoints& observed,
                              const HyperparameterPrior& prior, double* log_posterior) {
  const absl::MutexLock lock(&mutex_);
  if (!entry_.has_value() || !(entry_->fitted == fitted) || !(entry_->prior == prior)) {
    double value = 0.0;
    KernelParameters kernel = FitHyperparameters(fitted.points, fitted.values, prior, &value);
    entry_.emplace(
        Entry{fitted, prior, Posterior(std::move(kernel), observed.points.num_axes()), value});
  }
  entry_->posterior.SetPoints(observed.points);
  entry_->posterior.SetTargets(observed.values);
  if (log_posterior != nullptr) *log_posterior = entry_->log_posterior;
  return entry_->posterior;
}

}  // namespace hpo::sampler
