#include "common/study/unread_parameters.h"

#include "absl/strings/match.h"

namespace hpo {

bool IsRead(const ParameterTensor& tensor, const ModelShape& shape) {
  if (shape.relative.content_to_position || shape.relative.position_to_content) return true;
  return !absl::StrContains(tensor.name, "encoder.rel_embeddings.") &&
         !absl::StrContains(tensor.name, "encoder.LayerNorm.");
}

}  // namespace hpo
