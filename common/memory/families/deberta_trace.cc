// DeBERTa v2 and v3: transformers/models/deberta_v2/modeling_deberta_v2.py. Its attention is
// written out: scores of contents, of contents with positions and of positions with contents, each
// of heads x tokens x tokens, and the two last once more over every relative position.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/memory/families/classification_trace.h"
#include "common/memory/families/family_traces.h"
#include "common/memory/trace/layer_parameters.h"
#include "common/memory/trace/model_ops.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;
constexpr int64_t kBool = 1;
constexpr int64_t kFloat = 4;

struct Layer : EncoderLayerParameters {
  TracedLinear position_query, position_key;  // the content's where they are shared
};

class DebertaTrace final : public ModelTrace {
 public:
  DebertaTrace(TraceOps& ops, const TracedModel& model)
      : ops_(ops),
        model_ops_(ops),
        model_(model),
        shape_(model_.shape),
        labels_(model_.head.num_labels),
        parameters_(ops, model_.tensors, model_.adapters) {
    for (const EncoderLayerParameters& parameters : EncoderLayers(parameters_, shape_)) {
      layers_.push_back(WithPositions(parameters, static_cast<int64_t>(layers_.size())));
    }
  }

  TracedTensor Loss(const ModelBatch& batch, const TracedStorage& ids) override {
    batch_ = batch;
    const TracedTensor hidden = Encode(ids);
    return ClassificationLoss(ops_, parameters_, shape_,
                              ClassifiedToken(ops_, parameters_, shape_, hidden, batch), batch,
                              labels_);
  }

 private:
  Layer WithPositions(const EncoderLayerParameters& parameters, int64_t index) const {
    const std::string self = absl::StrCat("deberta.encoder.layer.", index, ".attention.self.");
    Layer layer{parameters, /*position_query=*/parameters.query, /*position_key=*/parameters.key};
    const bool shared = shape_.relative.share_projections;
    if (!shared && shape_.relative.content_to_position) {
      layer.position_key = parameters_.Linear(self + "pos_key_proj");
    }
    if (!shared && shape_.relative.position_to_content) {
      layer.position_query = parameters_.Linear(self + "pos_query_proj");
    }
    return layer;
  }

  int64_t Tokens() const { return batch_.rows * batch_.tokens; }
  int64_t Square() const { return batch_.tokens * batch_.tokens; }
  int64_t ScoreElements() const { return batch_.rows * shape_.num_heads * Square(); }

  TracedTensor Encode(const TracedStorage& ids) {
    const TracedStorage types = model_ops_.Plain(Tokens(), kIndex);
    const TracedTensor embedded = Embed(ids, types);
    const TracedStorage mask = model_ops_.Plain(batch_.rows * Square(), kIndex);
    TracedStorage relative_positions;
    TracedTensor relative;
    if (shape_.relative.span > 0) {
      relative_positions = RelativePositions();
      relative = ModelParameters::AsTensor(parameters_.At("deberta.encoder.rel_embeddings.weight"));
      if (shape_.relative_norm) {
        relative = ops_.LayerNorm(relative, parameters_.Norm("deberta.encoder.LayerNorm"));
      }
    }
    // The encoder returns every layer's output, so that all live until its end.
    std::vector<TracedTensor> hidden = {embedded};
    for (const Layer& layer : layers_) {
      TracedTensor output = RunModelLayer(
          ops_, model_, [this, &layer, input = hidden.back(), relative, mask, relative_positions] {
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
        model_ops_.WordEmbedding(ids, Tokens(), table("word"), width, model_.checkpointing);
    TracedTensor sum = words;
    TracedTensor positions;
    if (shape_.no_positions) {
      positions.storage = model_ops_.Plain(words.elements, words.element_size);
    } else {
      positions = ops_.Embedding({}, batch_.tokens, table("position"), width);
      sum = ops_.AddRepeated(sum, positions);
    }
    TracedTensor type_vectors;
    if (shape_.type_vocab_size > 0) {
      type_vectors = ops_.Embedding(types, Tokens(), table("token_type"), width);
      sum = ops_.Add(sum, type_vectors);
    }
    if (width != shape_.hidden_size) {
      sum = ops_.Linear(sum, parameters_.Linear("deberta.embeddings.embed_proj"));
    }
    sum = ops_.LayerNorm(sum, parameters_.Norm("deberta.embeddings.LayerNorm"));
    const TracedStorage mask = model_ops_.Plain(Tokens(), sum.element_size);
    sum = model_ops_.MultiplyBy(sum, mask);
    return ops_.Dropout(sum, shape_.hidden_dropout);
  }

  // [1, tokens, tokens]; in buckets where far positions share one.
  TracedStorage RelativePositions() {
    const TracedStorage queries = model_ops_.Plain(batch_.tokens, kIndex);
    const TracedStorage keys = model_ops_.Plain(batch_.tokens, kIndex);
    TracedStorage positions = model_ops_.Plain(Square(), kIndex);
    if (!shape_.relative.bucketed) return positions;
    positions = Bucketed();
    return model_ops_.Plain(Square(), kIndex);
  }

  // make_log_bucket_position: near positions as they are, far ones by their logarithm.
  TracedStorage Bucketed() {
    const auto plain = [this](int64_t size) { return model_ops_.Plain(Square(), size); };
    const TracedStorage sign = plain(kIndex);
    TracedStorage below = plain(kBool);
    TracedStorage above = plain(kBool);
    TracedStorage near = plain(kBool);
    below.Reset();
    above.Reset();
    TracedStorage distance = plain(kIndex);
    const TracedStorage absolute = plain(kIndex);
    near.Reset();
    distance.Reset();
    TracedStorage logarithm = plain(kFloat);
    for (int i = 0; i < 5; ++i) logarithm = plain(kFloat);  // log, quotient, product, ceil, sum
    const TracedStorage is_near = plain(kBool);
    const TracedStorage as_float = plain(kFloat);
    const TracedStorage signed_logarithm = plain(kFloat);
    return plain(kFloat);
  }

  TracedTensor RunLayer(const Layer& layer, const TracedTensor& input,
                        const TracedTensor& relative) {
    const TracedTensor attended = DenseAddNorm(layer.attention_dense, layer.attention_norm,
                                               Attend(layer, input, relative), input);
    const TracedTensor inner =
        model_ops_.Activate(ops_.Linear(attended, layer.intermediate), shape_.hidden_act);
    return DenseAddNorm(layer.output_dense, layer.output_norm, inner, attended);
  }

  TracedTensor DenseAddNorm(const TracedLinear& dense, const TracedNorm& norm,
                            const TracedTensor& input, const TracedTensor& residual) {
    TracedTensor hidden = ops_.Linear(input, dense);
    hidden = ops_.Dropout(hidden, shape_.hidden_dropout);
    return ops_.LayerNorm(ops_.Add(hidden, residual), norm);
  }

  // Heads apart, copied to be contiguous.
  TracedTensor Heads(const TracedTensor& input, const TracedLinear& projection) {
    return ops_.Copy(ops_.Linear(input, projection), /*copies_back=*/true);
  }

  TracedTensor Attend(const Layer& layer, const TracedTensor& input, const TracedTensor& relative) {
    const TracedTensor query = Heads(input, layer.query);
    const TracedTensor key = Heads(input, layer.key);
    const TracedTensor value = Heads(input, layer.value);
    TracedTensor scores = model_ops_.MatrixProduct(query, ops_.Scale(key), ScoreElements());
    TracedTensor dropped;
    std::optional<TracedTensor> bias;
    if (shape_.relative.span > 0) {
      dropped = ops_.Dropout(relative, shape_.hidden_dropout);
      // Gradients of both projections meet at a view of the table, then those of the layers.
      bias = PositionScores(layer, query, key, model_ops_.View(dropped));
    }
    if (bias.has_value()) scores = ops_.Add(scores, *bias);
    const TracedStorage keep = model_ops_.Plain(batch_.rows * Square(), kBool);
    scores = model_ops_.MaskedFill(scores, model_ops_.Plain(batch_.rows * Square(), kBool));
    TracedTensor probabilities = model_ops_.Softmax(scores);
    probabilities = ops_.Dropout(probabilities, shape_.attention_dropout);
    TracedTensor context = model_ops_.MatrixProduct(probabilities, value, input.elements);
    context = ops_.Copy(context, /*copies_back=*/true);
    return context;
  }

  // One relative table's projection for every row and head.
  TracedTensor PositionHeads(const TracedTensor& relative, const TracedLinear& projection) {
    return model_ops_.Repeat(Heads(relative, projection), batch_.rows);
  }

  std::optional<TracedTensor> PositionScores(const Layer& layer, const TracedTensor& query,
                                             const TracedTensor& key,
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
      from_content = model_ops_.Gather(from_content, content_index, ScoreElements());
      // 0 + the first term: a copy.
      score = model_ops_.AddToNumber(ops_.Scale(from_content));
    }
    if (p2c) {
      position_index = ClampedIndex(/*negated=*/true);
      from_position = AtEveryPosition(key, position_query);
      from_position = model_ops_.Gather(from_position, position_index, ScoreElements());
      const TracedTensor scaled = ops_.Scale(from_position);
      score = score.has_value() ? model_ops_.AddInPlace(*score, scaled)
                                : model_ops_.AddToNumber(scaled);
    }
    return score;
  }

  // Scores of every token with every relative position.
  TracedTensor AtEveryPosition(const TracedTensor& tokens, const TracedTensor& positions) {
    return model_ops_.MatrixProduct(
        tokens, positions,
        batch_.rows * shape_.num_heads * batch_.tokens * 2 * shape_.relative.span);
  }

  TracedStorage ClampedIndex(bool negated) {
    TracedStorage index;
    if (negated) index = model_ops_.Plain(Square(), kIndex);
    index = model_ops_.Plain(Square(), kIndex);
    index = model_ops_.Plain(Square(), kIndex);
    return index;
  }

  TracedTensor Convolve(const TracedTensor& embedded, const TracedTensor& residual) {
    TracedTensor out = ops_.Copy(embedded);
    out = model_ops_.Convolution(out, parameters_.At("deberta.encoder.conv.conv.weight"),
                                 parameters_.At("deberta.encoder.conv.conv.bias"));
    out = ops_.Copy(out);
    {
      const TracedStorage difference = model_ops_.Plain(Tokens(), kIndex);
      // Filled in place; the gradient is filled in a copy.
      out = model_ops_.MaskedFillInPlace(out, model_ops_.Plain(Tokens(), kBool));
    }
    out = model_ops_.Activate(ops_.Dropout(out, shape_.hidden_dropout), shape_.conv_act);
    const TracedTensor sum = ops_.Add(residual, out);
    const TracedTensor normed =
        ops_.LayerNorm(sum, parameters_.Norm("deberta.encoder.conv.LayerNorm"));
    const TracedStorage mask = model_ops_.Plain(Tokens(), normed.element_size);
    return model_ops_.MultiplyBy(normed, mask);
  }

  TraceOps& ops_;
  ModelOps model_ops_;
  const TracedModel model_;
  const ModelShape& shape_;
  int64_t labels_;
  ModelParameters parameters_;
  std::vector<Layer> layers_;
  ModelBatch batch_;
};

}  // namespace

std::unique_ptr<ModelTrace> MakeDebertaTrace(TraceOps& ops, const TracedModel& model) {
  return std::make_unique<DebertaTrace>(ops, model);
}

}  // namespace hpo
