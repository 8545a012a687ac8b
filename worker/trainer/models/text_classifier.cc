// Tested by tests/worker/trainer/models/tiny_models_golden_test.cc.
#include "worker/trainer/models/text_classifier.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/models/query_answers.h"
#include "worker/trainer/base/autocast.h"
#include "worker/trainer/models/layers/base_storage.h"

namespace hpo::trainer {
namespace {

absl::Status CheckDropout(absl::string_view name, double value) {
  if (value >= 0.0 && value < 1.0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected a dropout in [0, 1), got ", value));
}

absl::Status CheckHead(const HeadOptions& head) {
  HPO_RETURN_IF_ERROR(CheckDropout("head dropout", head.dropout));
  for (const int64_t size : head.hidden_sizes) {
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("head size: expected a positive number, got ", size));
    }
  }
  return absl::OkStatus();
}

}  // namespace

TextClassifier::TextClassifier(const ModelShape& shape, const HeadOptions& head,
                               torch::Device device, memory::FrozenType base)
    : modules_(ModulesOf(*ModelFamilyOf(shape.family)).classifier), dropout_(head.dropout) {
  const int64_t hidden = shape.hidden_size;
  const std::string prefix = ModulesOf(*ModelFamilyOf(shape.family)).prefix;
  const auto make_dense = [&] {
    dense_ = RegisterAt(*this, modules_.dense, Linear(hidden, hidden, device));
  };
  const bool in_backbone = absl::StartsWith(absl::NullSafeStringView(modules_.dense), prefix + ".");
  {
    const BaseStorageScope storage(base, device);
    backbone_ = register_module(prefix, MakeBackbone(shape, device));
    if (in_backbone) make_dense();
  }
  if (modules_.dense != nullptr && !in_backbone) make_dense();
  head_ = RegisterAt(*this, modules_.output,
                     ClassificationHead(hidden, head, device, modules_.output_bias));
  if (head.spans) span_head_ = register_module("qa_outputs", Linear(hidden, kSpanEnds, device));
}

torch::Tensor TextClassifier::SelectToken(const torch::Tensor& hidden,
                                          const ModelInput& input) const {
  if (input.packed) {
    const torch::Tensor firsts = input.packed.offsets.narrow(0, 0, NumRows(input.packed.rows));
    return hidden.view({-1, hidden.size(2)}).index_select(0, firsts);
  }
  if (!modules_.last_token) return hidden.select(/*dim=*/1, /*index=*/0);
  const torch::Tensor& mask = input.mask;
  const int64_t tokens = hidden.size(1);
  const torch::Tensor last = (at::arange(tokens, mask.options()) * mask).argmax(/*dim=*/1);
  const torch::Tensor rows =
      at::arange(0, hidden.size(0) * tokens, tokens, mask.options()).add_(last);
  return hidden.view({-1, hidden.size(2)}).index_select(0, rows);
}

TextClassifier::Outputs TextClassifier::Run(const ModelInput& input,
                                            std::vector<torch::Tensor>* hidden_states) {
  if (execution_.precision == Precision::kFloat32) return Compute(input, hidden_states);
  Outputs outputs;
  {
    const AutocastScope autocast({input.ids.device(), ScalarTypeOf(execution_.precision)});
    outputs = Compute(input, hidden_states);
  }
  outputs.logits = outputs.logits.to(torch::kFloat32);
  if (span_head_) outputs.spans = outputs.spans.to(torch::kFloat32);
  return outputs;
}

TextClassifier::Outputs TextClassifier::Compute(const ModelInput& input,
                                                std::vector<torch::Tensor>* hidden_states) {
  torch::Tensor hidden = backbone_->forward(input, hidden_states);
  torch::Tensor features = SelectToken(hidden, input);
  Outputs outputs;
  if (span_head_) outputs.spans = span_head_(hidden);
  hidden.reset();
  outputs.logits = Logits(std::move(features));
  return outputs;
}

torch::Tensor TextClassifier::Logits(torch::Tensor features) {
  if (dense_) {
    if (modules_.dropout_before_dense) features = Dropout(features, dropout_, is_training());
    features = Activate(dense_(features), modules_.activation);
  }
  return head_(features);
}

absl::StatusOr<std::shared_ptr<TextClassifier>> MakeTextClassifier(const ModelShape& shape,
                                                                   const HeadOptions& head,
                                                                   torch::Device device,
                                                                   memory::FrozenType base) {
  HPO_RETURN_IF_ERROR(CheckTrainable(shape));
  HPO_RETURN_IF_ERROR(CheckDropout("hidden dropout", shape.hidden_dropout));
  HPO_RETURN_IF_ERROR(CheckDropout("attention dropout", shape.attention_dropout));
  HPO_RETURN_IF_ERROR(CheckHead(head));
  return std::make_shared<TextClassifier>(shape, head, device, base);
}

}  // namespace hpo::trainer
