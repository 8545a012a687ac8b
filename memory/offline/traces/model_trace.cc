#include "memory/offline/traces/model_trace.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/models/activation.h"
#include "memory/offline/traces/deberta_trace.h"
#include "memory/offline/traces/decoder_trace.h"
#include "memory/offline/traces/encoder_trace.h"
#include "memory/offline/traces/gpt2_trace.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

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
  TracedAdapters adapters{.tensors = {}, .dropout = lora.dropout, .base = lora.base};
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
                           const ModelTechniques& techniques) {
  HPO_RETURN_IF_ERROR(CheckHasTrace(shape));
  const ModelFamily family = *ModelFamilyOf(shape.family);
  const bool classifies = head.kind == TaskHead::Kind::kSequenceClassification;
  const bool predicts_tokens = head.kind == TaskHead::Kind::kCausalLm && IsDecoder(family);
  if (!classifies && !predicts_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("task: expected text-classification",
                                                   IsDecoder(family) ? " or language-modeling" : "",
                                                   " with ", shape.family));
  }
  if (!techniques.lora.has_value()) return absl::OkStatus();
  return AdaptersOf(shape, head, *techniques.lora).status();
}

absl::StatusOr<std::unique_ptr<ModelTrace>> MakeModelTrace(TracedDevice& device,
                                                           const ModelShape& shape,
                                                           const TaskHead& head,
                                                           const ModelTechniques& techniques) {
  HPO_RETURN_IF_ERROR(CheckHasTrace(shape, head, techniques));
  TracedModel model{.shape = shape, .head = head, .checkpointing = techniques.checkpointing};
  HPO_ASSIGN_OR_RETURN(model.tensors, ParameterTensors(shape, head));
  if (techniques.lora.has_value()) {
    HPO_ASSIGN_OR_RETURN(model.adapters, AdaptersOf(shape, head, *techniques.lora));
  }
  switch (*ModelFamilyOf(shape.family)) {
    case ModelFamily::kBert:
    case ModelFamily::kRoberta:
    case ModelFamily::kElectra:
    case ModelFamily::kDistilBert:
      return MakeEncoderTrace(device, model);
    case ModelFamily::kDeberta:
      return MakeDebertaTrace(device, model);
    case ModelFamily::kGpt2:
      return MakeGpt2Trace(device, model);
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      return MakeDecoderTrace(device, model);
  }
  return absl::InternalError("unknown family");
}

}  // namespace hpo::memory
