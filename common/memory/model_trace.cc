#include "common/memory/model_trace.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/memory/encoder_trace.h"
#include "common/status.h"

namespace hpo {

absl::Status CheckHasTrace(const ModelShape& shape) {
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  if (family == ModelFamily::kBert || family == ModelFamily::kRoberta ||
      family == ModelFamily::kDeberta) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("model_type: expected one of bert, roberta, xlm-roberta, camembert, deberta-v2 "
                   "(the families with a trace); got '",
                   shape.family, "'"));
}

absl::StatusOr<std::unique_ptr<ModelTrace>> MakeModelTrace(TraceOps& ops, const ModelShape& shape,
                                                           const TaskHead& head) {
  HPO_RETURN_IF_ERROR(CheckHasTrace(shape));
  if (head.kind != TaskHead::Kind::kSequenceClassification) {
    return absl::InvalidArgumentError("head: expected one for classification");
  }
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> tensors, ParameterTensors(shape, head));
  if (*ModelFamilyOf(shape.family) == ModelFamily::kDeberta) {
    return MakeDebertaTrace(ops, shape, head, tensors);
  }
  return MakeEncoderTrace(ops, shape, head, tensors);
}

}  // namespace hpo
