#include "common/memory/model_trace.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/memory/family_traces.h"
#include "common/status.h"

namespace hpo {

absl::Status CheckHasTrace(const ModelShape& shape) {
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  if (family == ModelFamily::kBert || family == ModelFamily::kRoberta ||
      family == ModelFamily::kDeberta || family == ModelFamily::kLlama ||
      family == ModelFamily::kQwen2) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      "model_type: expected one of bert, roberta, xlm-roberta, camembert, deberta-v2, llama, "
      "qwen2 (the families with a trace); got '",
      shape.family, "'"));
}

absl::Status CheckHasTrace(const ModelShape& shape, const TaskHead& head) {
  HPO_RETURN_IF_ERROR(CheckHasTrace(shape));
  const ModelFamily family = *ModelFamilyOf(shape.family);
  const TaskHead::Kind expected =
      IsDecoder(family) ? TaskHead::Kind::kCausalLm : TaskHead::Kind::kSequenceClassification;
  if (head.kind != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "head: expected one for ", IsDecoder(family) ? "language modelling" : "classification",
        " on ", shape.family));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ModelTrace>> MakeModelTrace(TraceOps& ops, const ModelShape& shape,
                                                           const TaskHead& head) {
  HPO_RETURN_IF_ERROR(CheckHasTrace(shape, head));
  const ModelFamily family = *ModelFamilyOf(shape.family);
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> tensors, ParameterTensors(shape, head));
  if (IsDecoder(family)) return MakeDecoderTrace(ops, shape, head, tensors);
  if (family == ModelFamily::kDeberta) {
    return MakeDebertaTrace(ops, shape, head, tensors);
  }
  return MakeEncoderTrace(ops, shape, head, tensors);
}

}  // namespace hpo
