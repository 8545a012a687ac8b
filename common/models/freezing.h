// Parameters of a model that a trial leaves as they are: the embeddings, the lowest layers.
// Pure; safe from any thread.
#pragma once

#include <compare>
#include <cstdint>

#include "absl/status/status.h"
#include "common/models/model_parameters.h"
#include "common/models/model_spec.h"

namespace hpo {

struct Freezing {
  bool embeddings = false;  // model.freeze_embeddings: all that comes before the layers
  int64_t layers = 0;       // model.freeze_layers: so many of the lowest
  auto operator<=>(const Freezing&) const = default;

  bool Any() const { return embeddings || layers > 0; }
};

//   InvalidArgument  more layers than the model has, or fewer than none; names both numbers
absl::Status CheckFreezing(const Freezing& freezing, const ModelShape& shape);

// Whether a tensor of ParameterTensors stays as it is. DeBERTa's convolution belongs to the lowest
// layer, whose output it is added to; its table of relative positions serves all layers and is
// trained.
bool IsFrozen(const ParameterTensor& tensor, const Freezing& freezing);

}  // namespace hpo
