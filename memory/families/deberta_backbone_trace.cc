// Tested by tests/worker/trainer/memory_trace_test.cc.
#include "memory/families/deberta_backbone_trace.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/models/relative_positions.h"
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

class DebertaBackboneTrace final : public EncoderTraceBase {
 public:
  DebertaBackboneTrace(TracedDevice& device, const ModelShape& shape,
                       const ModelParameters& parameters)
      : EncoderTraceBase(device, shape, parameters),
        layers_(MakeDebertaLayers(parameters, shape)) {}

 private:
  TracedStorage Indices(int64_t count) const { return device().Allocate(kIndexBytes * count); }
  // Distances between tokens of one text.
  int64_t NumDistances() const { return 2 * batch().tokens - 1; }

  TracedContext ContextOf(const TracedBatch& batch) override {
    TracedContext context{.bias = PaddingBias(batch), .mask = batch.mask};
    if (shape().relative.span == 0) return context;
    const TracedParameter& table = parameters().At("deberta.encoder.rel_embeddings.weight");
    context.relative = ops::Cast(
        device(),
        ops::Narrow(device(), ModelParameters::AsTensor(table), NumRows() * shape().hidden_size),
        kFloatBytes);
    if (shape().relative_norm) {
      context.relative =
          LayerNorm(context.relative, parameters().Norm("deberta.encoder.LayerNorm"));
    }
    {
      const ops::Number first(device(), /*element_size=*/0);
      context.falling_rows = Indices(NumDistances());
    }
    context.rising_rows = Indices(NumDistances());
    return context;
  }

  // Of the relative table, those that this many tokens reach.
  int64_t NumRows() const {
    const auto row_of = [this](int64_t distance) {
      return RelativeRow(shape().relative, shape().max_positions, distance);
    };
    return row_of(batch().tokens - 1) - row_of(1 - batch().tokens) + 1;
  }

  TracedTensor Embed(const TracedBatch& batch) override {
    const int64_t width = shape().EmbeddingSize();
    const auto table = [this](const char* name) {
      return parameters().At(absl::StrCat("deberta.embeddings.", name, "_embeddings.weight"));
    };
    TracedTensor sum = Lookup(batch.ids, batch.Tokens(), table("word"), width);
    if (!shape().no_positions) {
      const TracedStorage positions = Indices(batch.shape.tokens);
      sum = ops::AddRepeated(device(), sum,
                             Lookup(positions, batch.shape.tokens, table("position"), width));
    }
    if (shape().type_vocab_size > 0) {
      sum = Add(sum, Lookup(batch.types, batch.Tokens(), table("token_type"), width));
    }
    if (width != shape().hidden_size) {
      sum = Linear(sum, parameters().Linear("deberta.embeddings.embed_proj"));
    }
    return Dropout(LayerNorm(sum, parameters().Norm("deberta.embeddings.LayerNorm")),
                   shape().hidden_dropout);
  }

  TracedTensor RunLayer(int64_t index, const TracedTensor& hidden,
                        const TracedContext& context) override {
    const TracedTensor output = EncoderTraceBase::RunLayer(index, hidden, context);
    return index == 0 && shape().conv_kernel_size > 0 ? Convolve(hidden, output) : output;
  }

  AttentionShape WrittenAttention() const {
    AttentionShape attention = Attention();
    attention.written_out = true;
    return attention;
  }

  TracedTensor SelfAttention(int64_t index, const TracedTensor& hidden,
                             const TracedContext& context) override {
    using Role = ops::AttentionRole;
    const AttentionShape attention = WrittenAttention();
    const TracedTensor query = Linear(hidden, layer(index).query);
    const TracedTensor key = Linear(hidden, layer(index).key);
    TracedTensor scores;
    {
      // Where another gradient was there before, the key's is added to it as it comes.
      const TracedTensor k = shape().relative.position_to_content
                                 ? ops::View(device(), key)
                                 : ops::SplitHeads(device(), key, attention, Role::kKey);
      const TracedTensor q = ops::ByHeads(
          device(), ops::SplitHeads(device(), query, attention, Role::kQuery), attention);
      scores = ops::BatchedProduct(device(), q, ops::ByHeads(device(), k, attention),
                                   attention.ScoreElements());
    }
    if (context.relative.elements > 0) {
      const TracedTensor relative = Dropout(context.relative, shape().hidden_dropout);
      const auto add_scores = [&](const TracedTensor& tokens, const TracedLinear& projection,
                                  const TracedStorage& rows) {
        const TracedTensor positions = Linear(relative, projection, /*rows_are_flattened=*/false);
        scores = ops::AddInPlace(device(), scores, PositionScores(tokens, positions, rows));
      };
      const DebertaLayerParameters& layer = layers_[static_cast<size_t>(index)];
      if (shape().relative.content_to_position) {
        add_scores(query, layer.position_key, context.falling_rows);
      }
      if (shape().relative.position_to_content) {
        add_scores(key, layer.position_query, context.rising_rows);
      }
    }
    TracedTensor attended;
    {
      const TracedTensor value =
          ops::SplitHeads(device(), Linear(hidden, layer(index).value), attention, Role::kValue);
      attended = ops::AttendByScores(device(), std::move(scores), value, attention);
    }
    return ops::Relayout(device(), attended, attention.heads > 1, /*copies_back=*/false);
  }

  // Every distance's product with every token, then the one that each pair of tokens has.
  TracedTensor PositionScores(const TracedTensor& tokens, const TracedTensor& positions,
                              const TracedStorage& rows) {
    const AttentionShape attention = WrittenAttention();
    const int64_t pairs = attention.batch * attention.heads * attention.tokens;
    TracedTensor products;
    {
      const TracedTensor by_distance =
          ops::Lookup(device(), positions, rows, NumDistances(), shape().hidden_size);
      const TracedTensor by_head =
          ops::Relayout(device(), tokens, /*copies=*/false, /*copies_back=*/attention.heads > 1);
      products = ops::BatchedProduct(device(), by_head, by_distance, pairs * NumDistances());
    }
    if (attention.tokens == 1) return products;
    const TracedTensor shorter =
        ops::Narrow(device(), products, pairs * (2 * attention.tokens - 2));
    return ops::Narrow(device(), shorter, pairs * attention.tokens);
  }

  TracedTensor Convolve(const TracedTensor& input, const TracedTensor& residual) {
    const int64_t width = shape().conv_kernel_size;
    const int64_t tokens = batch().rows * batch().tokens;
    TracedTensor masked;
    {
      const TracedStorage mask = device().Allocate(kFloatBytes * tokens);
      masked = ops::MultiplyBy(device(), input, mask);
    }
    TracedTensor neighbours;
    {
      const int64_t length = batch().tokens + width - 1;
      TracedTensor padded = device().NewTensor(batch().rows * length * shape().hidden_size);
      padded.edge = device().RecordLike(masked);
      neighbours = ops::Unfold(device(), padded, tokens * shape().hidden_size * width, length);
    }
    const TracedLinear convolution{.weight = parameters().At("deberta.encoder.conv.conv.weight"),
                                   .bias = parameters().At("deberta.encoder.conv.conv.bias"),
                                   .in_features = shape().hidden_size * width,
                                   .out_features = shape().hidden_size};
    const TracedTensor mixed = Linear(neighbours, convolution);
    return LayerNorm(Add(residual, Activate(Dropout(mixed, shape().hidden_dropout),
                                            *ActivationOf(shape().conv_act))),
                     parameters().Norm("deberta.encoder.conv.LayerNorm"));
  }

  const std::vector<DebertaLayerParameters> layers_;
};

}  // namespace

std::unique_ptr<BackboneTrace> MakeDebertaBackboneTrace(TracedDevice& device,
                                                        const ModelShape& shape,
                                                        const ModelParameters& parameters) {
  return std::make_unique<DebertaBackboneTrace>(device, shape, parameters);
}

}  // namespace hpo::memory
