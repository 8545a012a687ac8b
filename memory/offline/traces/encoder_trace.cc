// Tested by tests/memory/offline/traces/model_trace_test.cc.
#include "memory/offline/traces/encoder_trace.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/models/model_modules.h"
#include "memory/offline/traces/classification_trace.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/layer_parameters.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

class EncoderTrace final : public ModelTrace {
 public:
  EncoderTrace(TracedDevice& device, const TracedModel& model)
      : device_(device),
        model_(model),
        shape_(model_.shape),
        labels_(model_.head.num_labels),
        family_(*ModelFamilyOf(shape_.family)),
        attends_with_dense_(!EncoderLayerModulesOf(family_).attention_dropout),
        parameters_(device, model_.tensors, model_.adapters),
        prefix_(absl::StrCat(ModulesOf(family_).prefix, ".")),
        layers_(MakeEncoderLayers(parameters_, shape_)) {}

  TracedTensor Loss(const ModelBatch& batch, const TracedStorage& ids) override {
    const Encoded encoded = Encode(batch, ids);
    TracedTensor token = encoded.pooled;
    if (!HasPooler()) token = ClassifiedToken(device_, parameters_, shape_, encoded.hidden, batch);
    return ClassificationLoss(device_, parameters_, shape_, std::move(token), batch, labels_);
  }

 private:
  struct Encoded {
    TracedTensor hidden;
    TracedTensor pooled;  // where the model has the head's first layer
  };

  bool HasPooler() const { return family_ == ModelFamily::kBert; }

  Encoded Encode(const ModelBatch& batch, const TracedStorage& ids) {
    TracedTensor embedded = Embed(batch, ids);
    if (shape_.EmbeddingSize() != shape_.hidden_size) {
      embedded = ops::Linear(device_, embedded, parameters_.Linear(prefix_ + "embeddings_project"));
    }
    Encoded encoded{.hidden = embedded};
    const TracedStorage mask = PaddingMask(batch);
    for (const EncoderLayerParameters& layer : layers_) {
      encoded.hidden =
          RunModelLayer(device_, model_, [this, &layer, input = encoded.hidden, mask, batch] {
            return RunLayer(layer, input, batch);
          });
    }
    if (HasPooler()) {
      encoded.pooled = ClassifiedToken(device_, parameters_, shape_, encoded.hidden, batch);
    }
    return encoded;
  }

  TracedTensor Embed(const ModelBatch& batch, const TracedStorage& ids) {
    const int64_t tokens = batch.rows * batch.tokens;
    const int64_t width = shape_.EmbeddingSize();
    const bool is_roberta = family_ == ModelFamily::kRoberta;
    // The positions and types are those of one row, expanded; RoBERTa's depend on the padding.
    const int64_t positions = is_roberta ? tokens : batch.tokens;
    const TracedStorage position_ids = is_roberta ? PositionsFromIds(tokens) : TracedStorage();
    TracedStorage type_ids;
    if (family_ != ModelFamily::kDistilBert) type_ids = ops::Plain(device_, positions, kIndexBytes);
    TracedTensor sum =
        ops::WordEmbedding(device_, ids, tokens, Table("word"), width, model_.checkpointing);
    const TracedTensor words = sum;
    TracedTensor types;
    if (type_ids) {
      types = ops::Embedding(device_, type_ids, tokens, Table("token_type"), width);
      sum = ops::Add(device_, words, types);
    }
    const TracedTensor places =
        ops::Embedding(device_, position_ids, positions, Table("position"), width);
    sum = is_roberta ? ops::Add(device_, sum, places) : ops::AddRepeated(device_, sum, places);
    sum = ops::LayerNorm(device_, sum, parameters_.Norm(prefix_ + "embeddings.LayerNorm"));
    sum = ops::Dropout(device_, sum, shape_.hidden_dropout);
    return sum;
  }

  const TracedParameter& Table(const char* name) const {
    return parameters_.At(absl::StrCat(prefix_, "embeddings.", name, "_embeddings.weight"));
  }

  // Counts the tokens that are no padding.
  TracedStorage PositionsFromIds(int64_t tokens) {
    TracedStorage present = ops::Plain(device_, tokens, kBoolBytes);
    const TracedStorage mask = ops::Plain(device_, tokens, kIntBytes);
    present.Reset();
    TracedStorage counted = ops::Plain(device_, tokens, kIndexBytes);
    counted = ops::Plain(device_, tokens, kIntBytes);
    TracedStorage shifted = ops::Plain(device_, tokens, kIntBytes);  // by past tokens: none
    counted.Reset();
    const TracedStorage masked = ops::Plain(device_, tokens, kIntBytes);
    shifted.Reset();
    const TracedStorage wide = ops::Plain(device_, tokens, kIndexBytes);
    return ops::Plain(device_, tokens, kIndexBytes);
  }

  // [rows, 1, tokens, tokens], true where both tokens are no padding.
  TracedStorage PaddingMask(const ModelBatch& batch) {
    const int64_t tokens = batch.tokens;
    const TracedStorage present = ops::Plain(device_, batch.rows * tokens, kBoolBytes);
    const TracedStorage row_ids = ops::Plain(device_, batch.rows, kIndexBytes);
    const TracedStorage head_ids = ops::Plain(device_, 1, kIndexBytes);
    const TracedStorage query_ids = ops::Range(device_, tokens);
    const TracedStorage key_ids = ops::Range(device_, tokens);
    const TracedStorage all = ops::Plain(device_, 1, kBoolBytes);
    TracedStorage compared = ops::Plain(device_, tokens, kBoolBytes);
    const TracedStorage allowed = ops::Plain(device_, tokens, kBoolBytes);
    compared.Reset();
    const TracedStorage of_keys = ops::Plain(device_, batch.rows * tokens, kBoolBytes);
    return ops::Plain(device_, batch.rows * tokens * tokens, kBoolBytes);
  }

  TracedTensor RunLayer(const EncoderLayerParameters& layer, const TracedTensor& input,
                        const ModelBatch& batch) {
    TracedTensor attended = Attend(layer, input, batch);
    attended = attends_with_dense_
                   ? AddNorm(layer.attention_norm, attended, input)
                   : DenseAddNorm(layer.attention_dense, layer.attention_norm, attended, input);
    TracedTensor inner = ops::Linear(device_, attended, layer.intermediate);
    inner = ops::Activate(device_, inner, shape_.hidden_act);
    // BERT holds its input's name to the end.
    const TracedTensor held = attends_with_dense_ ? TracedTensor() : inner;
    return DenseAddNorm(layer.output_dense, layer.output_norm, std::move(inner), attended);
  }

  TracedTensor Attend(const EncoderLayerParameters& layer, const TracedTensor& input,
                      const ModelBatch& batch) {
    const TracedTensor query = ops::Linear(device_, input, layer.query);
    const TracedTensor key = ops::Linear(device_, input, layer.key);
    const TracedTensor value = ops::Linear(device_, input, layer.value);
    const AttentionShape attention = AttentionOf(shape_, batch);
    TracedTensor context =
        ops::Attention(device_, query, key, value, attention,
                       ops::AttentionBias(device_, batch.rows, batch.tokens, query));
    if (attends_with_dense_) context = ops::Linear(device_, context, layer.attention_dense);
    return context;
  }

  TracedTensor DenseAddNorm(const TracedLinear& dense, const TracedNorm& norm, TracedTensor input,
                            const TracedTensor& residual) {
    TracedTensor hidden = ops::Linear(device_, input, dense);
    input = {};
    hidden = ops::Dropout(device_, hidden, shape_.hidden_dropout);
    return AddNorm(norm, hidden, residual);
  }

  TracedTensor AddNorm(const TracedNorm& norm, const TracedTensor& input,
                       const TracedTensor& residual) {
    return ops::LayerNorm(device_, ops::Add(device_, input, residual), norm);
  }

  TracedDevice& device_;
  const TracedModel model_;
  const ModelShape& shape_;
  int64_t labels_;
  ModelFamily family_;
  bool attends_with_dense_;  // DistilBERT's attention has the dense layer, without dropout
  ModelParameters parameters_;
  std::string prefix_;
  std::vector<EncoderLayerParameters> layers_;
};

}  // namespace

std::unique_ptr<ModelTrace> MakeEncoderTrace(TracedDevice& device, const TracedModel& model) {
  return std::make_unique<EncoderTrace>(device, model);
}

}  // namespace hpo::memory
