// Tensors that a model's file has and nothing computes with: they get no gradient, so they are not
// trained. Pure; safe from any thread.
#pragma once

#include "common/models/model_parameters.h"
#include "common/models/model_spec.h"

namespace hpo {

// Whether the model computes with a tensor of ParameterTensors. It does not with DeBERTa's table of
// relative positions and its norm where no term of the scores reads them.
bool IsRead(const ParameterTensor& tensor, const ModelShape& shape);

}  // namespace hpo
