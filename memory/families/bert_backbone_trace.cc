#include "memory/families/bert_backbone_trace.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/models/model_modules.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

constexpr int64_t kScanBytes = 1279;

class BertBackboneTrace final : public EncoderTraceBase {
 public:
  BertBackboneTrace(TracedDevice& device, const ModelShape& shape,
                    const ModelParameters& parameters)
      : EncoderTraceBase(device, shape, parameters),
        family_(*ModelFamilyOf(shape.family)),
        prefix_(absl::StrCat(ModulesOf(family_).prefix, ".")) {}

 private:
  TracedContext ContextOf(const TracedBatch& batch) override {
    if (batch.IsPacked()) return {};
    return {.bias = PaddingBias(batch)};
  }

  // Positions of every row where they depend on the padding.
  bool CountsTokens() const { return family_ == ModelFamily::kRoberta; }

  TracedStorage PositionsOf(const TracedBatch& batch) const {
    if (batch.IsPacked()) {
      if (!CountsTokens()) return batch.positions;
      const ops::Number first(device(), /*element_size=*/0);
      return device().Allocate(kIndexBytes * batch.Tokens());
    }
    if (!CountsTokens()) return device().Allocate(kIndexBytes * batch.shape.tokens);
    const TracedStorage positions = device().Allocate(kIndexBytes * batch.Tokens());
    // CUB's, of a count along a single row.
    if (!device().traits().cpu && batch.shape.rows == 1) device().Touch(kScanBytes);
    const ops::Number first(device(), /*element_size=*/0);
    return positions;
  }

  TracedTensor Embed(const TracedBatch& batch) override {
    const int64_t width = shape().EmbeddingSize();
    const auto table = [this](const char* name) {
      return parameters().At(absl::StrCat(prefix_, "embeddings.", name, "_embeddings.weight"));
    };
    const TracedStorage positions = PositionsOf(batch);
    TracedTensor sum = Lookup(batch.ids, batch.Tokens(), table("word"), width);
    if (family_ != ModelFamily::kDistilBert) {
      sum = Add(sum, Lookup(batch.types, batch.Tokens(), table("token_type"), width));
    }
    if (CountsTokens() || batch.IsPacked()) {
      sum = Add(sum, Lookup(positions, batch.Tokens(), table("position"), width));
    } else {
      sum = ops::AddRepeated(device(), sum,
                             Lookup(positions, batch.shape.tokens, table("position"), width));
    }
    const TracedTensor embedded =
        Dropout(LayerNorm(sum, parameters().Norm(prefix_ + "embeddings.LayerNorm")),
                shape().hidden_dropout);
    return width == shape().hidden_size
               ? embedded
               : Linear(embedded, parameters().Linear(prefix_ + "embeddings_project"));
  }

  ModelFamily family_;
  std::string prefix_;
};

}  // namespace

std::unique_ptr<BackboneTrace> MakeBertBackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                     const ModelParameters& parameters) {
  return std::make_unique<BertBackboneTrace>(device, shape, parameters);
}

}  // namespace hpo::memory
