#include "common/models/freezing.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hpo {

absl::Status CheckFreezing(const Freezing& freezing, const ModelShape& shape) {
  if (freezing.layers >= 0 && freezing.layers <= shape.num_layers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model.freeze_layers: expected at most the ",
                                                 shape.num_layers, " layers of the model, got ",
                                                 freezing.layers));
}

bool IsFrozen(const ParameterTensor& tensor, const Freezing& freezing) {
  if (absl::StrContains(tensor.name, "encoder.conv.")) return freezing.layers > 0;
  if (tensor.layer < 0) return freezing.embeddings;
  return tensor.layer < freezing.layers;
}

}  // namespace hpo
