// Parameters that a trial leaves as they are: without gradients, so that the optimizer keeps no
// states of them and backward nothing for them.
#pragma once

#include "common/models/freezing.h"
#include "common/models/model_spec.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// Of a classifier of `shape`'s, as `freezing`, which CheckFreezing takes, says, and what nothing
// reads.
void FreezeParameters(torch::nn::Module& model, const ModelShape& shape, const Freezing& freezing);

// Whether a parameter of the module or of its children is trained.
bool HasTrainedParameters(const torch::nn::Module& module);

}  // namespace hpo::trainer
