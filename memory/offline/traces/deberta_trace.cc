// Tested by tests/memory/offline/traces/model_trace_test.cc.
#include "memory/offline/traces/deberta_trace.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "memory/offline/traces/classification_trace.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/layer_parameters.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

class DebertaTrace final : public ModelTrace {
 public:
  DebertaTrace(TracedDevice& device, const TracedModel& model)
      : device_(device),
        model_(model),
        shape_(model_.shape),
        labels_(model_.head.num_labels),
        parameters_(device, model_.tensors, model_.adapters),
        layers_(MakeDebertaLayers(parameters_, shape_)) {}

  TracedTensor Loss(const ModelBatch& batch, const TracedStorage& ids) override {
    batch_ = batch;
    const TracedTensor hidden = Encode(ids);
    return ClassificationLoss(device_, parameters_, shape_,
                              ClassifiedToken(device_, parameters_, shape_, hidden, batch), batch,
                              labels_);
  }

 private:
  int64_t Tokens() const { return batch_.rows * batch_.tokens; }
  int64_t Square() const { return batch_.tokens * batch_.tokens; }
  int64_t ScoreElements() const { return batch_.rows * shape_.num_heads * Square(); }

  TracedTensor Encode(const TracedStorage& ids) {
    const TracedStorage types = ops::Plain(device_, Tokens(), kIndexBytes);
    const TracedTensor embedded = Embed(ids, types);
    const TracedStorage mask = ops::Plain(device_, batch_.rows * Square(), kIndexBytes);
    TracedStorage relative_positions;
    TracedTensor relative;
    if (shape_.relative.span > 0) {
      relative_positions = RelativePositions();
      relative = ModelParameters::AsTensor(parameters_.At("deberta.encoder.rel_embeddings.weight"));
      if (shape_.relative_norm) {
        relative = ops::LayerNorm(device_, relative, parameters_.Norm("deberta.encoder.LayerNorm"));
      }
    }
    // The encoder returns every layer's output, so that all live until its end.
    std::vector<TracedTensor> hidden = {embedded};
    for (const DebertaLayerParameters& layer : layers_) {
      TracedTensor output =
          RunModelLayer(device_, model_,
                        [this, &layer, input = hidden.back(), relative, mask, relative_positions] {
                          return RunLayer(layer, input, relative);
                        });
      if (hidden.size() == 1 && shape_.conv_kernel_size > 0) output = Convolve(embedded, output);
      hidden.push_back(std::move(output));
    }
    return hidden.back();
  }

  TracedTensor Embed(const TracedStorage& ids, const TracedStorage& types) {
    const int64_t width = shape_.EmbeddingSize();
    const auto table = [this](const char* name) {
      return parameters_.At(absl::StrCat("deberta.embeddings.", name, "_embeddings.weight"));
    };
    const TracedTensor words =
        ops::WordEmbedding(device_, ids, Tokens(), table("word"), width, model_.checkpointing);
    TracedTensor sum = words;
    TracedTensor positions;
    if (shape_.no_positions) {
      positions.storage = ops::Plain(device_, words.elements, words.element_size);
    } else {
      positions = ops::Embedding(device_, {}, batch_.tokens, table("position"), width);
      sum = ops::AddRepeated(device_, sum, positions);
    }
    TracedTensor type_vectors;
    if (shape_.type_vocab_size > 0) {
      type_vectors = ops::Embedding(device_, types, Tokens(), table("token_type"), width);
      sum = ops::Add(device_, sum, type_vectors);
    }
    if (width != shape_.hidden_size) {
      sum = ops::Linear(device_, sum, parameters_.Linear("deberta.embeddings.embed_proj"));
    }
    sum = ops::LayerNorm(device_, sum, parameters_.Norm("deberta.embeddings.LayerNorm"));
    const TracedStorage mask = ops::Plain(device_, Tokens(), sum.element_size);
    sum = ops::MultiplyBy(device_, sum, mask);
    return ops::Dropout(device_, sum, shape_.hidden_dropout);
  }

  // [1, tokens, tokens]; in buckets where far positions share one.
  TracedStorage RelativePositions() {
    const TracedStorage queries = ops::Plain(device_, batch_.tokens, kIndexBytes);
    const TracedStorage keys = ops::Plain(device_, batch_.tokens, kIndexBytes);
    TracedStorage positions = ops::Plain(device_, Square(), kIndexBytes);
    if (!shape_.relative.bucketed) return positions;
    positions = Bucketed();
    return ops::Plain(device_, Square(), kIndexBytes);
  }

  // make_log_bucket_position: near positions as they are, far ones by their logarithm.
  TracedStorage Bucketed() {
    const auto plain = [this](int64_t size) { return ops::Plain(device_, Square(), size); };
    const TracedStorage sign = plain(kIndexBytes);
    TracedStorage below = plain(kBoolBytes);
    TracedStorage above = plain(kBoolBytes);
    TracedStorage near = plain(kBoolBytes);
    below.Reset();
    above.Reset();
    TracedStorage distance = plain(kIndexBytes);
    const TracedStorage absolute = plain(kIndexBytes);
    near.Reset();
    distance.Reset();
    TracedStorage logarithm = plain(kFloatBytes);
    for (int i = 0; i < 5; ++i) {  // log, quotient, product, ceil, sum
      logarithm = plain(kFloatBytes);
    }
    const TracedStorage is_near = plain(kBoolBytes);
    const TracedStorage as_float = plain(kFloatBytes);
    const TracedStorage signed_logarithm = plain(kFloatBytes);
    return plain(kFloatBytes);
  }

  TracedTensor RunLayer(const DebertaLayerParameters& layer, const TracedTensor& input,
                        const TracedTensor& relative) {
    const TracedTensor attended = DenseAddNorm(layer.attention_dense, layer.attention_norm,
                                               Attend(layer, input, relative), input);
    const TracedTensor inner = ops::Activate(
        device_, ops::Linear(device_, attended, layer.intermediate), shape_.hidden_act);
    return DenseAddNorm(layer.output_dense, layer.output_norm, inner, attended);
  }

  TracedTensor DenseAddNorm(const TracedLinear& dense, const TracedNorm& norm,
                            const TracedTensor& input, const TracedTensor& residual) {
    TracedTensor hidden = ops::Linear(device_, input, dense);
    hidden = ops::Dropout(device_, hidden, shape_.hidden_dropout);
    return ops::LayerNorm(device_, ops::Add(device_, hidden, residual), norm);
  }

  // Heads apart, copied to be contiguous.
  TracedTensor Heads(const TracedTensor& input, const TracedLinear& projection) {
    return ops::Copy(device_, ops::Linear(device_, input, projection), /*copies_back=*/true);
  }

  TracedTensor Attend(const DebertaLayerParameters& layer, const TracedTensor& input,
                      const TracedTensor& relative) {
    const TracedTensor query = Heads(input, layer.query);
    const TracedTensor key = Heads(input, layer.key);
    const TracedTensor value = Heads(input, layer.value);
    TracedTensor scores =
        ops::MatrixProduct(device_, query, ops::Scale(device_, key), ScoreElements());
    TracedTensor dropped;
    std::optional<TracedTensor> bias;
    if (shape_.relative.span > 0) {
      dropped = ops::Dropout(device_, relative, shape_.hidden_dropout);
      // Gradients of both projections meet at a view of the table, then those of the layers.
      bias = PositionScores(layer, query, key, ops::View(device_, dropped));
    }
    if (bias.has_value()) scores = ops::Add(device_, scores, *bias);
    const TracedStorage keep = ops::Plain(device_, batch_.rows * Square(), kBoolBytes);
    scores =
        ops::MaskedFill(device_, scores, ops::Plain(device_, batch_.rows * Square(), kBoolBytes));
    TracedTensor probabilities = ops::Softmax(device_, scores);
    probabilities = ops::Dropout(device_, probabilities, shape_.attention_dropout);
    TracedTensor context = ops::MatrixProduct(device_, probabilities, value, input.elements);
    context = ops::Copy(device_, context, /*copies_back=*/true);
    return context;
  }

  // One relative table's projection for every row and head.
  TracedTensor PositionHeads(const TracedTensor& relative, const TracedLinear& projection) {
    return ops::Repeat(device_, Heads(relative, projection), batch_.rows);
  }

  std::optional<TracedTensor> PositionScores(const DebertaLayerParameters& layer,
                                             const TracedTensor& query, const TracedTensor& key,
                                             const TracedTensor& relative) {
    const bool c2p = shape_.relative.content_to_position;
    const bool p2c = shape_.relative.position_to_content;
    const bool shared = shape_.relative.share_projections;
    TracedTensor position_query;
    TracedTensor position_key;
    if (shared) {
      position_query = PositionHeads(relative, layer.position_query);
      position_key = PositionHeads(relative, layer.position_key);
    } else {
      if (c2p) position_key = PositionHeads(relative, layer.position_key);
      if (p2c) position_query = PositionHeads(relative, layer.position_query);
    }
    std::optional<TracedTensor> score;
    TracedTensor from_content;
    TracedTensor from_position;
    TracedStorage content_index;
    TracedStorage position_index;
    if (c2p) {
      from_content = AtEveryPosition(query, position_key);
      content_index = ClampedIndex(/*negated=*/false);
      from_content = ops::Gather(device_, from_content, content_index, ScoreElements());
      // 0 + the first term: a copy.
      score = ops::AddToNumber(device_, ops::Scale(device_, from_content));
    }
    if (p2c) {
      position_index = ClampedIndex(/*negated=*/true);
      from_position = AtEveryPosition(key, position_query);
      from_position = ops::Gather(device_, from_position, position_index, ScoreElements());
      const TracedTensor scaled = ops::Scale(device_, from_position);
      score = score.has_value() ? ops::AddInPlace(device_, *score, scaled)
                                : ops::AddToNumber(device_, scaled);
    }
    return score;
  }

  // Scores of every token with every relative position.
  TracedTensor AtEveryPosition(const TracedTensor& tokens, const TracedTensor& positions) {
    return ops::MatrixProduct(
        device_, tokens, positions,
        batch_.rows * shape_.num_heads * batch_.tokens * 2 * shape_.relative.span);
  }

  TracedStorage ClampedIndex(bool negated) {
    TracedStorage index;
    if (negated) index = ops::Plain(device_, Square(), kIndexBytes);
    index = ops::Plain(device_, Square(), kIndexBytes);
    index = ops::Plain(device_, Square(), kIndexBytes);
    return index;
  }

  TracedTensor Convolve(const TracedTensor& embedded, const TracedTensor& residual) {
    TracedTensor out = ops::Copy(device_, embedded);
    out = ops::Convolution(device_, out, parameters_.At("deberta.encoder.conv.conv.weight"),
                           parameters_.At("deberta.encoder.conv.conv.bias"));
    out = ops::Copy(device_, out);
    {
      const TracedStorage difference = ops::Plain(device_, Tokens(), kIndexBytes);
      // Filled in place; the gradient is filled in a copy.
      out = ops::MaskedFillInPlace(device_, out, ops::Plain(device_, Tokens(), kBoolBytes));
    }
    out =
        ops::Activate(device_, ops::Dropout(device_, out, shape_.hidden_dropout), shape_.conv_act);
    const TracedTensor sum = ops::Add(device_, residual, out);
    const TracedTensor normed =
        ops::LayerNorm(device_, sum, parameters_.Norm("deberta.encoder.conv.LayerNorm"));
    const TracedStorage mask = ops::Plain(device_, Tokens(), normed.element_size);
    return ops::MultiplyBy(device_, normed, mask);
  }

  TracedDevice& device_;
  const TracedModel model_;
  const ModelShape& shape_;
  int64_t labels_;
  ModelParameters parameters_;
  std::vector<DebertaLayerParameters> layers_;
  ModelBatch batch_;
};

}  // namespace

std::unique_ptr<ModelTrace> MakeDebertaTrace(TracedDevice& device, const TracedModel& model) {
  return std::make_unique<DebertaTrace>(device, model);
}

}  // namespace hpo::memory
