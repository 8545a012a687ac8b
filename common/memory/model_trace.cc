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

namespace {

absl::StatusOr<TracedAdapters> AdaptersOf(const ModelShape& shape, const TaskHead& head,
                                          const LoraOptions& lora) {
  if (!IsDecoder(*ModelFamilyOf(shape.family))) {
    return absl::UnimplementedError(absl::StrCat(
        "lora: expected llama or qwen2 (the families traced with adapters), got ", shape.family));
  }
  TracedAdapters adapters{.tensors = {}, .dropout = lora.dropout};
  HPO_ASSIGN_OR_RETURN(adapters.tensors, LoraTensors(shape, head, lora));
  for (const ParameterTensor& tensor : adapters.tensors) {
    if (tensor.kind != ParameterKind::kEmbedding) continue;
    return absl::UnimplementedError(
        absl::StrCat("lora.targets: expected linear layers, got the embedding ", tensor.name));
  }
  return adapters;
}

}  // namespace

absl::Status CheckHasTrace(const ModelShape& shape, const TaskHead& head,
                           const std::optional<LoraOptions>& lora) {
  HPO_RETURN_IF_ERROR(CheckHasTrace(shape));
  const ModelFamily family = *ModelFamilyOf(shape.family);
  const TaskHead::Kind expected =
      IsDecoder(family) ? TaskHead::Kind::kCausalLm : TaskHead::Kind::kSequenceClassification;
  if (head.kind != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "head: expected one for ", IsDecoder(family) ? "language modelling" : "classification",
        " on ", shape.family));
  }
  return lora.has_value() ? AdaptersOf(shape, head, *lora).status() : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ModelTrace>> MakeModelTrace(TraceOps& ops, const ModelShape& shape,
                                                           const TaskHead& head,
                                                           const std::optional<LoraOptions>& lora) {
  HPO_RETURN_IF_ERROR(CheckHasTrace(shape, head, lora));
  const ModelFamily family = *ModelFamilyOf(shape.family);
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> tensors, ParameterTensors(shape, head));
  TracedAdapters adapters;
  if (lora.has_value()) {
    HPO_ASSIGN_OR_RETURN(adapters, AdaptersOf(shape, head, *lora));
  }
  if (IsDecoder(family)) return MakeDecoderTrace(ops, shape, tensors, adapters);
  if (family == ModelFamily::kDeberta) {
    return MakeDebertaTrace(ops, shape, head, tensors);
  }
  return MakeEncoderTrace(ops, shape, head, tensors);
}

}  // namespace hpo
