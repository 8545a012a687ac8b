#include "common/memory/model_trace.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/activation.h"
#include "common/memory/family_traces.h"
#include "common/status.h"

namespace hpo {

namespace {

constexpr char kFamilies[] =
    "bert, roberta, xlm-roberta, camembert, deberta-v2, gpt2, llama, qwen2";

// gelu_fast is written out in another way than gelu_new.
bool HasActivationTrace(const std::string& hidden_act) {
  return ActivationOf(hidden_act).has_value() && hidden_act != "gelu_fast";
}

}  // namespace

absl::Status CheckHasTrace(const ModelShape& shape) {
  HPO_RETURN_IF_ERROR(CheckKnownFamily(shape));
  const bool hidden = !HasActivationTrace(shape.hidden_act);
  const bool conv = shape.conv_kernel_size > 0 && !HasActivationTrace(shape.conv_act);
  if (!hidden && !conv) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(hidden ? "hidden_act" : "conv_act",
                                               ": expected gelu, gelu_new, gelu_pytorch_tanh, "
                                               "relu, silu or tanh (those with a trace), got '",
                                               hidden ? shape.hidden_act : shape.conv_act, "'"));
}

namespace {

absl::StatusOr<TracedAdapters> AdaptersOf(const ModelShape& shape, const TaskHead& head,
                                          const LoraOptions& lora) {
  if (!IsDecoder(*ModelFamilyOf(shape.family))) {
    return absl::UnimplementedError(absl::StrCat(
        "lora: expected gpt2, llama or qwen2 (the families traced with adapters), got ",
        shape.family));
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
  if (family == ModelFamily::kGpt2) return MakeGpt2Trace(ops, shape, tensors, adapters);
  if (IsDecoder(family)) return MakeDecoderTrace(ops, shape, tensors, adapters);
  if (family == ModelFamily::kDeberta) {
    return MakeDebertaTrace(ops, shape, head, tensors);
  }
  return MakeEncoderTrace(ops, shape, head, tensors);
}

}  // namespace hpo
