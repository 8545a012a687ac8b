// Posteriors with fitted kernel parameters, kept between calls where the trials that they are of
// have not changed. What is given equals what a new cache would fit, bit for bit.
// Safe from any thread; each posterior given is the caller's own.
#pragma once

#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "sampler/gp/surrogate/hyperparameters.h"
#include "sampler/gp/surrogate/posterior.h"

namespace hpo::sampler {

// Points with a value each, or with values for the first of them.
struct LabelledPoints {
  PointTable points;
  std::vector<double> values;
  bool operator==(const LabelledPoints&) const = default;
};

class SurrogateCache {
 public:
  // The posterior after `observed`, whose points without a value are fantasies, with the kernel
  // parameters fitted to `fitted`. Values are as the process is to see them. `log_posterior` (may
  // be null) is that of the parameters.
  Posterior Get(const LabelledPoints& fitted, const LabelledPoints& observed,
                const HyperparameterPrior& prior = DefaultPrior(), double* log_posterior = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    LabelledPoints fitted;
    HyperparameterPrior prior;
    Posterior posterior;
    double log_posterior = 0.0;
  };

  absl::Mutex mutex_;
  std::optional<Entry> entry_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::sampler
