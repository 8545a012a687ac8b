#include "sampler/gp/prior_posteriors.h"

#include <utility>

#include "sampler/gp/quality_points.h"
#include "sampler/gp/surrogate/training_data.h"

namespace hpo::sampler {

PriorPosteriors::PriorPosteriors(std::vector<PriorStudy> studies, MemoryPolicy policy)
    : studies_(std::move(studies)), policy_(policy) {
  for (size_t i = 0; i < studies_.size(); ++i) {
    caches_.push_back(std::make_unique<SurrogateCache>());
  }
}

std::vector<std::optional<Posterior>> PriorPosteriors::Get(const InputSpace& inputs,
                                                           const CodedSpace& space,
                                                           Bytes capacity) const {
  std::vector<std::optional<Posterior>> posteriors(studies_.size());
  for (size_t i = 0; i < studies_.size(); ++i) {
    const TrainingData data = CollectTrainingData(studies_[i].history, space, capacity, policy_);
    if (data.losses.empty() || data.meaning != LossMeaning::kObjective) continue;
    const QualityPoints points = ChooseQualityPoints(inputs, data);
    posteriors[i] = caches_[i]->Get(points.fitted, points.observed);
  }
  return posteriors;
}

}  // namespace hpo::sampler
