#include "worker/trainer/models/text_classifier.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/trainer/models/autocast.h"

namespace hpo {
namespace {

enum class Family { kBert };

absl::StatusOr<Family> ParseFamily(const std::string& name) {
  if (name == "bert") return Family::kBert;
  return absl::UnimplementedError(
      absl::StrCat("model_type: expected bert, got '", name, "' (config.json)"));
}

absl::Status CheckDropout(absl::string_view name, double value) {
  if (value >= 0.0 && value < 1.0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected a dropout in [0, 1), got ", value));
}

class BertTextClassifier final : public TextClassifier {
 public:
  BertTextClassifier(const ModelShape& shape, const HeadOptions& head, torch::Device device)
      : bert_(register_module("bert", BertModel(shape, device))),
        classifier_(
            register_module("classifier", ClassificationHead(shape.hidden_size, head, device))) {}

  torch::Tensor forward(const EncoderInput& input) override {
    const auto run = [&] {
      return classifier_(bert_(input, nullptr, execution_.checkpoint_every));
    };
    if (execution_.precision == Precision::kFloat32) return run();
    torch::Tensor logits;
    {
      const AutocastScope autocast({input.ids.device(), ScalarTypeOf(execution_.precision)});
      logits = run();
    }
    return logits.to(torch::kFloat32);
  }

  torch::Tensor Trace(const EncoderInput& input,
                      std::vector<torch::Tensor>& hidden_states) override {
    return classifier_(bert_(input, &hidden_states));
  }

 private:
  BertModel bert_;
  ClassificationHead classifier_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<TextClassifier>> MakeTextClassifier(const ModelShape& shape,
                                                                   const HeadOptions& head,
                                                                   torch::Device device) {
  HPO_ASSIGN_OR_RETURN(const Family family, ParseFamily(shape.family));
  if (shape.hidden_act != "gelu") {
    return absl::UnimplementedError(
        absl::StrCat("hidden_act: expected gelu, got '", shape.hidden_act, "' (config.json)"));
  }
  HPO_RETURN_IF_ERROR(CheckDropout("hidden dropout", shape.hidden_dropout));
  HPO_RETURN_IF_ERROR(CheckDropout("attention dropout", shape.attention_dropout));
  HPO_RETURN_IF_ERROR(CheckDropout("head dropout", head.dropout));
  for (const int64_t size : head.hidden_sizes) {
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("head size: expected a positive number, got ", size));
    }
  }
  switch (family) {
    case Family::kBert:
      return std::make_shared<BertTextClassifier>(shape, head, device);
  }
  return absl::InternalError("unknown model family");
}

}  // namespace hpo
