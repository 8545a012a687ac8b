// Which observations a process of quality is fitted to, and which it is over. Pure; safe from any
// thread.
#pragma once

#include <cstddef>
#include <vector>

#include "sampler/gp/surrogate/input_space.h"
#include "sampler/gp/surrogate/surrogate_cache.h"
#include "sampler/gp/surrogate/training_data.h"
#include "sampler/gp/trust_region.h"

namespace hpo::sampler {

// How many of `count` observations the kernel parameters are fitted to: all up to 32, then the last
// multiple of a power of two that is about a sixteenth of them.
size_t FitPoint(size_t count);

// As the process is to see them (loss_scale.h).
struct QualityPoints {
  LabelledPoints fitted;
  LabelledPoints observed;
  std::vector<bool> may_be_best;  // of `observed` (TrainingData::feasible)
  std::vector<size_t> trials;     // of `observed`: which of TrainingData::observed
  double loss_per_step = 0.0;     // of `observed` (LossPerStep)
};

// Of a fit the first FitPoint() trials by number, of a model these and all after them; of more than
// 256 and 512 the best half and the newest.
QualityPoints ChooseQualityPoints(const InputSpace& inputs, const TrainingData& data);

// Those of `all` that tell of the region, fitted to themselves alone; the best is one in its box.
QualityPoints PointsNear(const TrustRegion& region, const TrainingData& data,
                         const QualityPoints& all);

}  // namespace hpo::sampler
