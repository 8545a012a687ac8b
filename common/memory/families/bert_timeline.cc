// Tensors of one pass. n rows, s tokens, E hidden, F intermediate, a heads, V vocabulary; float32
// unless said otherwise. "kept" = saved for backward.
//
//   name          bytes      kept by one layer
//   hidden        4 n s E    8: query, key, value, context; and twice the residual sum (LayerNorm's
//                            input) and LayerNorm's output
//   intermediate  4 n s F    2: GELU's input and its output
//   statistics    4 n s      4: LayerNorm's mean and reciprocal deviation, twice
//   mask          n s E      2 with hidden dropout, one byte per element
//   scores        4 n a s s  2 with written-out attention: probabilities, dropped probabilities
//   score mask    n a s s    1 with written-out attention
//   logsumexp     4 n a s    1 with fused attention
//
// Source of the classes: Korthikanti et al. 2022 (arXiv:2205.05198), section 4; of the order and
// the temporaries: allocations of worker/trainer/models logged one by one.
#include "common/memory/families/bert_timeline.h"

#include <algorithm>

#include "common/models/model_modules.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kIndex = 8;

struct Sizes {
  int64_t hidden;
  int64_t intermediate;
  int64_t statistics;
  int64_t mask;
  int64_t scores;
  int64_t score_mask;
  int64_t logsumexp;
  int64_t indices;          // 8 n s: one of the batch's integer tensors
  int64_t embedding;        // 4 n s W, W the width of the embeddings: E but for some ELECTRAs
  int64_t embedding_mask;   // n s W
  int64_t position_rows;    // 4 s W; of RoBERTa, whose rows each have their own, 4 n s W
  int64_t position_ids;     // those of RoBERTa
  int64_t square_weight;    // 4 E E
  int64_t wide_weight;      // 4 E F
  int64_t vector;           // 4 E
  int64_t wide_vector;      // 4 F
  int64_t forward_buffers;  // of the fused attention kernel
  int64_t backward_buffers;
  int64_t norm_buffers;  // of LayerNorm's backward
  bool hidden_dropout;
  bool attention_output_dropout;  // hidden dropout after attention too
  bool plain_attention;
  bool projected_embeddings;  // W is not E
};

int64_t Rounded(int64_t bytes, const KernelTraits& traits) {
  return (bytes + traits.granularity - 1) / traits.granularity * traits.granularity;
}

// Queries that a thread of torch's fused CPU kernel takes at a time (FlashAttentionKernel.cpp).
int64_t QueryBlock(int64_t tokens) { return tokens >= 768 ? 256 : tokens >= 192 ? 64 : 32; }
constexpr int64_t kKeyBlock = 512;

// Another family counts as BERT.
ModelFamily FamilyOf(const ModelShape& model) {
  const ModelFamily family = ModelFamilyOf(model.family).value_or(ModelFamily::kBert);
  return IsDecoder(family) ? ModelFamily::kBert : family;
}

Sizes SizesOf(const PassShape& shape, const KernelTraits& traits) {
  const ModelShape& model = shape.model;
  const auto bytes = [&traits](std::initializer_list<int64_t> factors) {
    return Rounded(TensorBytes(factors), traits);
  };
  const int64_t tokens = TensorBytes({shape.rows, shape.tokens});
  const int64_t query_block = QueryBlock(shape.tokens);
  const int64_t key_block = std::min(kKeyBlock, shape.tokens);
  const int64_t head_size = model.hidden_size / model.num_heads;
  const int64_t threads = traits.threads_with_buffers;
  const int64_t width = model.EmbeddingSize();
  const ModelFamily family = FamilyOf(model);
  const bool own_positions = family == ModelFamily::kRoberta;
  return {
      .hidden = bytes({kFloat, tokens, model.hidden_size}),
      .intermediate = bytes({kFloat, tokens, model.intermediate_size}),
      .statistics = bytes({kFloat, tokens}),
      .mask = bytes({tokens, model.hidden_size}),
      .scores = bytes({kFloat, tokens, shape.tokens, model.num_heads}),
      .score_mask = bytes({tokens, shape.tokens, model.num_heads}),
      .logsumexp = bytes({kFloat, tokens + 32 * shape.rows, model.num_heads}),
      .indices = bytes({kIndex, tokens}),
      .embedding = bytes({kFloat, tokens, width}),
      .embedding_mask = bytes({tokens, width}),
      .position_rows = bytes({kFloat, own_positions ? tokens : shape.tokens, width}),
      .position_ids = own_positions ? bytes({kIndex, tokens}) : 0,
      .square_weight = bytes({kFloat, model.hidden_size, model.hidden_size}),
      .wide_weight = bytes({kFloat, model.hidden_size, model.intermediate_size}),
      .vector = bytes({kFloat, model.hidden_size}),
      .wide_vector = bytes({kFloat, model.intermediate_size}),
      .forward_buffers = bytes({kFloat, threads, query_block, key_block + 2 + head_size}),
      .backward_buffers = bytes({kFloat, threads, query_block, 2 * key_block + 1}),
      .norm_buffers = bytes({kFloat, threads, 2, model.hidden_size}),
      .hidden_dropout = model.hidden_dropout > 0.0,
      .attention_output_dropout =
          model.hidden_dropout > 0.0 && EncoderLayerModulesOf(family).attention_dropout,
      .plain_attention = traits.cpu && model.attention_dropout > 0.0,
      .projected_embeddings = width != model.hidden_size,
  };
}

// ---- Operations ------------------------------------------------------------------------------

// Leaves mask and output.
void Dropout(AllocationTimeline& time, int64_t mask, int64_t output) {
  time.Allocate(mask);
  time.Allocate(output);
}

// Frees the mask; leaves the gradient of the input.
void DropoutBackward(AllocationTimeline& time, int64_t mask, int64_t output) {
  time.Allocate(output);
  time.Free(mask);
}

// Of tensors of `bytes`. Leaves output, mean and reciprocal deviation.
void LayerNorm(AllocationTimeline& time, const Sizes& size, int64_t bytes) {
  time.Allocate(bytes);
  time.Allocate(2 * size.statistics);
}

// Frees the gradient of the output, the saved input and the statistics; leaves the gradient of the
// input.
void LayerNormBackward(AllocationTimeline& time, const Sizes& size, int64_t bytes, bool exists) {
  time.Allocate(bytes);
  time.AccumulateGradient(2 * size.vector, exists);
  time.Touch(size.norm_buffers);
  time.Free(2 * bytes + 2 * size.statistics);
}

// The second half of both sublayers: dense layer, dropout, residual sum, LayerNorm. `input` is kept
// by whoever made it. Leaves the sum, LayerNorm's output and statistics, and the mask.
void OutputForward(AllocationTimeline& time, const Sizes& size, bool drops) {
  time.Allocate(size.hidden);
  if (drops) Dropout(time, size.mask, size.hidden);
  time.Allocate(size.hidden);
  LayerNorm(time, size, size.hidden);
  time.Free(drops ? 2 * size.hidden : size.hidden);
}

// Bytes of a dense layer's input and weight.
struct DenseSizes {
  int64_t input;
  int64_t weight;
};

// From the gradient of LayerNorm's output to those of the dense layer's input and of the residual;
// the saved input is left to the caller.
void OutputBackward(AllocationTimeline& time, const Sizes& size, bool drops, DenseSizes dense,
                    bool exists) {
  LayerNormBackward(time, size, size.hidden, exists);
  if (drops) DropoutBackward(time, size.mask, size.hidden);
  time.Allocate(dense.input);
  time.AccumulateGradient(dense.weight, exists);
  time.AccumulateGradient(size.vector, exists);
  if (drops) time.Free(size.hidden);
}

// Leaves what is kept: four of `hidden` size, the context among them.
void AttentionForward(AllocationTimeline& time, const Sizes& size) {
  time.Allocate(3 * size.hidden);  // query, key, value
  if (!size.plain_attention) {
    time.Allocate(size.hidden + size.logsumexp);
    time.Touch(size.forward_buffers);
    return;
  }
  time.Allocate(2 * size.hidden);  // query and key, contiguous by head
  time.Allocate(size.scores);
  time.Allocate(size.scores);  // softmax
  time.Free(size.scores);
  Dropout(time, size.score_mask, size.scores);
  time.Allocate(2 * size.hidden);  // value, contiguous by head; context
  time.Free(3 * size.hidden);      // the projections before their copies
  time.Touch(size.hidden);         // context in the layout of `hidden`
}

// From the gradient of the context to those of query, key and value, kept tensors freed.
void AttentionBackward(AllocationTimeline& time, const Sizes& size, const KernelTraits& traits) {
  if (!size.plain_attention) {
    time.Allocate(3 * size.hidden);
    time.Touch(size.backward_buffers);
    // On a card: context times its gradient, and what that sums to for each query.
    if (!traits.cpu) time.Touch(size.hidden + size.logsumexp);
    time.Free(5 * size.hidden + size.logsumexp);  // query, key, value, context and its gradient
    return;
  }
  time.Free(size.hidden);      // the copy of the context that the dense layer kept
  time.Touch(size.hidden);     // its gradient in the layout of heads
  time.Allocate(size.hidden);  // of value
  time.Allocate(size.scores);
  time.Free(2 * size.hidden + size.scores);  // gradient and saved value, dropped probabilities
  DropoutBackward(time, size.score_mask, size.scores);
  time.Free(size.scores);
  time.Allocate(size.scores);  // through softmax
  time.Free(2 * size.scores);
  time.Touch(size.scores);  // through the scale
  time.Allocate(2 * size.hidden);
  time.Free(size.scores + 2 * size.hidden);
}

// ---- Stages ----------------------------------------------------------------------------------

// From the batch on the device to the first hidden state.
AllocationTimeline EmbeddingForward(const Sizes& size) {
  AllocationTimeline time;
  time.Allocate(3 * size.indices);     // ids, mask, types
  time.Allocate(2 * size.statistics);  // attention bias; positions and small change
  time.Allocate(size.position_ids);
  time.Allocate(3 * size.embedding);  // words, types, their sum
  time.Free(2 * size.embedding);
  time.Allocate(size.position_rows + size.embedding);
  time.Free(size.position_rows + size.embedding);
  LayerNorm(time, size, size.embedding);
  if (size.hidden_dropout) {
    Dropout(time, size.embedding_mask, size.embedding);
    time.Free(size.embedding);
  }
  if (size.projected_embeddings) time.Allocate(size.hidden);
  return time;
}

AllocationTimeline LayerForward(const Sizes& size) {
  AllocationTimeline time;
  AttentionForward(time, size);
  OutputForward(time, size, size.attention_output_dropout);
  time.Allocate(2 * size.intermediate);
  OutputForward(time, size, size.hidden_dropout);
  return time;
}

// From the gradient of the layer's output to that of its input; frees what the layer kept, but
// instead of its output (freed already) its input.
AllocationTimeline LayerBackward(const Sizes& size, const KernelTraits& traits, bool exists) {
  AllocationTimeline time;
  OutputBackward(time, size, size.hidden_dropout,
                 {.input = size.intermediate, .weight = size.wide_weight}, exists);
  time.Free(size.intermediate);      // saved input of the dense layer
  time.Allocate(size.intermediate);  // through GELU
  time.Free(2 * size.intermediate);
  time.Allocate(size.hidden);
  time.AccumulateGradient(size.wide_weight, exists);
  time.AccumulateGradient(size.wide_vector, exists);
  time.Free(size.intermediate + 2 * size.hidden);  // saved input; the residual's is added in place
  OutputBackward(time, size, size.attention_output_dropout,
                 {.input = size.hidden, .weight = size.square_weight}, exists);
  AttentionBackward(time, size, traits);
  for (int projection = 0; projection < 3; ++projection) {
    if (size.plain_attention) time.Touch(size.hidden);
    time.Allocate(size.hidden);
    time.AccumulateGradient(size.square_weight, exists);
    time.AccumulateGradient(size.vector, exists);
    time.Free(2 * size.hidden);
  }
  time.Free(size.hidden);
  return time;
}

AllocationTimeline EmbeddingBackward(const Sizes& size, const PassShape& shape,
                                     const KernelTraits& traits, bool exists) {
  const auto table = [&](int64_t rows) {
    return Rounded(TensorBytes({kFloat, rows, shape.model.EmbeddingSize()}), traits);
  };
  AllocationTimeline time;
  if (size.projected_embeddings) {
    time.Allocate(size.embedding);
    time.AccumulateGradient(table(shape.model.hidden_size), exists);
    time.AccumulateGradient(size.vector, exists);
    time.Free(size.hidden + size.embedding);  // gradient of the output; saved input
  }
  if (size.hidden_dropout) {
    DropoutBackward(time, size.embedding_mask, size.embedding);
    time.Free(size.embedding);
  }
  LayerNormBackward(time, size, size.embedding, exists);
  time.Allocate(size.position_rows);
  time.AccumulateGradient(table(shape.model.max_positions + UnusedPositions(shape.model)), exists);
  time.Free(size.position_rows);
  time.AccumulateGradient(table(shape.model.type_vocab_size), exists);
  // A card sorts the indices, and sums by pieces.
  if (!traits.cpu) time.Touch(table(shape.model.vocab_size) + 6 * size.indices + size.hidden);
  time.AccumulateGradient(table(shape.model.vocab_size), exists);
  time.Free(size.embedding);
  return time;
}

// Pooler, head and loss have no token dimension: a handful of rows x width tensors, all of them
// counted as alive to the end.
AllocationTimeline HeadPass(const Sizes& size, const PassShape& shape, const KernelTraits& traits,
                            bool exists) {
  const auto vectors = [&](int64_t count, int64_t width) {
    return count * Rounded(TensorBytes({kFloat, shape.rows, width}), traits);
  };
  AllocationTimeline time;
  const bool drops_twice = ModulesOf(FamilyOf(shape.model)).classifier.dropout_before_dense;
  time.Allocate(vectors(drops_twice ? 14 : 8, shape.model.hidden_size));
  for (const int64_t width : shape.head_sizes) time.Allocate(vectors(8, width));
  time.Allocate(vectors(8, shape.num_labels));
  // The head's own gradients are counted apart, but not those on their way into a sum.
  if (exists) time.Touch(HeadParameterBytes(shape, traits));
  time.AccumulateGradient(size.square_weight, exists);
  time.AccumulateGradient(size.vector, exists);
  // The last hidden state makes room for its gradient.
  time.Free(size.hidden);
  time.Allocate(size.hidden);
  return time;
}

AllocationTimeline HeadEvaluation(const PassShape& shape, const KernelTraits& traits) {
  int64_t widest = shape.model.hidden_size;
  for (const int64_t width : shape.head_sizes) widest = std::max(widest, width);
  AllocationTimeline time;
  time.Touch(4 * Rounded(TensorBytes({kFloat, shape.rows, widest}), traits));
  time.Touch(4 * Rounded(TensorBytes({kFloat, shape.rows, shape.num_labels}), traits));
  return time;
}

AllocationTimeline LayerEvaluation(const Sizes& size) {
  AllocationTimeline time;
  time.Allocate(4 * size.hidden + size.logsumexp);
  time.Touch(size.forward_buffers);
  time.Free(3 * size.hidden + size.logsumexp);
  time.Allocate(3 * size.hidden);  // dense, sum, LayerNorm
  time.Touch(2 * size.statistics);
  time.Free(3 * size.hidden);  // context, dense, sum
  time.Allocate(2 * size.intermediate);
  time.Allocate(3 * size.hidden);
  time.Touch(2 * size.statistics);
  time.Free(2 * size.intermediate + 4 * size.hidden);
  return time;
}

}  // namespace

KernelTraits KernelTraits::Cpu() {
  return {.granularity = 64, .cpu = true, .threads_with_buffers = 64};
}

KernelTraits KernelTraits::Cuda() {
  return {.granularity = 512,
          .cpu = false,
          .threads_with_buffers = 0,
          .attention = AttentionKernels::OfCapability(""),
          .capability = CapabilityNumber(""),
          .multiprocessors = 132,
          .threads_per_multiprocessor = 2048};
}

int64_t EncoderParameterBytes(const ModelShape& model, const KernelTraits& traits) {
  const auto tensor = [&traits](int64_t rows, int64_t columns) {
    return Rounded(TensorBytes({kFloat, rows, columns}), traits);
  };
  const int64_t hidden = model.hidden_size;
  const int64_t norm = 2 * tensor(1, hidden);
  const int64_t square = tensor(hidden, hidden) + tensor(1, hidden);
  const int64_t wide = 2 * tensor(hidden, model.intermediate_size) +
                       tensor(1, model.intermediate_size) + tensor(1, hidden);
  const int64_t width = model.EmbeddingSize();
  int64_t embeddings = tensor(model.vocab_size, width) +
                       tensor(model.max_positions + UnusedPositions(model), width) +
                       tensor(model.type_vocab_size, width) + 2 * tensor(1, width);
  if (width != hidden) embeddings += tensor(hidden, width) + tensor(1, hidden);
  return embeddings + model.num_layers * (4 * square + wide + 2 * norm) + square;
}

std::vector<ParameterExtent> HeadExtents(const PassShape& shape) {
  std::vector<ParameterExtent> extents;
  if (shape.num_labels == 0) return extents;
  int64_t width = shape.model.hidden_size;
  const auto add_layer = [&](int64_t next) {
    extents.push_back({.rows = next, .columns = width});
    extents.push_back({.rows = next});
    width = next;
  };
  for (const int64_t size : shape.head_sizes) add_layer(size);
  add_layer(shape.num_labels);
  return extents;
}

int64_t HeadParameterBytes(const PassShape& shape, const KernelTraits& traits) {
  int64_t bytes = 0;
  for (const ParameterExtent& extent : HeadExtents(shape)) {
    bytes += Rounded(TensorBytes({kFloat, extent.rows, extent.columns}), traits);
  }
  return bytes;
}

int64_t HeadStateBytes(const OptimizerSpec& optimizer, const PassShape& shape,
                       const KernelTraits& traits) {
  int64_t bytes = 0;
  for (const ParameterExtent& extent : HeadExtents(shape)) {
    for (const int64_t size : StateBytes(optimizer, extent)) bytes += Rounded(size, traits);
  }
  return bytes;
}

AllocationTimeline TrainingPass(const PassShape& shape, const KernelTraits& traits,
                                bool gradients_exist) {
  const Sizes size = SizesOf(shape, traits);
  AllocationTimeline time = EmbeddingForward(size);
  time.Append(LayerForward(size), shape.model.num_layers);
  time.Append(HeadPass(size, shape, traits, gradients_exist));
  time.Append(LayerBackward(size, traits, gradients_exist), shape.model.num_layers);
  time.Append(EmbeddingBackward(size, shape, traits, gradients_exist));
  return time;
}

AllocationTimeline EvaluationPass(const PassShape& shape, const KernelTraits& traits) {
  const Sizes size = SizesOf(shape, traits);
  AllocationTimeline time;
  time.Allocate(3 * size.indices + 2 * size.statistics + size.position_ids);
  time.Allocate(3 * size.embedding);
  time.Touch(size.position_rows);
  LayerNorm(time, size, size.embedding);
  time.Free(3 * size.embedding + 2 * size.statistics);
  if (size.projected_embeddings) {
    time.Allocate(size.hidden);
    time.Free(size.embedding);
  }
  time.Append(LayerEvaluation(size), shape.model.num_layers);
  time.Append(HeadEvaluation(shape, traits));
  return time;
}

}  // namespace hpo
