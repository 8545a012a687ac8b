// Layers of torch.nn as a card runs them.
#include <utility>

#include "common/memory/trace/embedding_scratch.h"
#include "common/memory/trace/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kHalf = 2;
constexpr int64_t kIndex = 8;
// Flash attention's backward rounds queries and head sizes up to these.
constexpr int64_t kFlashQueries = 128;
constexpr int64_t kFlashHeadSize = 32;
// The generator's state, and what nobody uses.
constexpr int64_t kFlashStateBytes = 16;
constexpr int64_t kFlashUnusedBytes = 8;

int64_t RoundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

TracedTensor TraceOps::Embedding(const TracedStorage& indices, int64_t num_indices,
                                 const TracedParameter& table, int64_t width) {
  TracedTensor output = tracer_.NewTensor(num_indices * width, table.element_size);
  output.edge = tracer_.Record({table.Edge()}, {indices},
                               [this, num_indices, width, table](auto&, const auto&) {
                                 return OneGradient(EmbeddingGradient(num_indices, width, table));
                               });
  return output;
}

TracedStorage TraceOps::EmbeddingGradient(int64_t num_indices, int64_t width,
                                          const TracedParameter& table) {
  if (SumsWithoutSorting(num_indices, traits_)) {
    return tracer_.Allocate(table.bytes(), MemoryClass::kGradients);
  }
  const EmbeddingScratch scratch =
      EmbeddingScratchOf(num_indices, table.elements / width, width, traits_);
  const auto temporary = [this](int64_t bytes) {
    return tracer_.Allocate(bytes, MemoryClass::kTemporary);
  };
  const TracedStorage sorted = temporary(scratch.indices);
  const TracedStorage original = temporary(scratch.indices);
  {
    const TracedStorage range = temporary(scratch.indices);
    tracer_.Touch(scratch.sort);
  }
  TracedStorage gradient = tracer_.Allocate(table.bytes(), MemoryClass::kGradients);
  const TracedStorage segments = temporary(scratch.indices);
  const TracedStorage num_segments = temporary(kIndex);
  {
    const TracedStorage unique = temporary(scratch.indices);
    tracer_.Touch(scratch.unique);
  }
  const TracedStorage parts_of_segments = temporary(scratch.segments);
  const TracedStorage first_parts = temporary(scratch.segments);
  tracer_.Touch(scratch.scan);
  const TracedStorage num_parts = temporary(kIndex);
  const TracedStorage parts = temporary(scratch.parts);
  tracer_.Touch(scratch.sums);
  return gradient;
}

TracedTensor TraceOps::LinearOfTransposed(const TracedTensor& input, const TracedLinear& layer) {
  const TracedTensor swapped = Relayout(input, /*copies=*/false, /*copies_back=*/false);
  const int64_t element_size = autocast_ ? kHalf : input.element_size;
  const TracedTensor bias = WeightFor(*layer.bias, element_size);
  const TracedTensor weight = WeightFor(layer.weight, element_size);
  const TracedTensor x = CastForProduct(swapped);
  TracedLinear product = layer;
  product.bias.reset();
  TracedTensor output = LinearAlone(Copy(x), product, /*rows_are_flattened=*/true);
  output.edge = tracer_.Record(
      {output.edge, bias.edge}, {},
      [this, rows = Reduction{.rows = output.elements / bias.elements,
                              .columns = bias.elements,
                              .element_size = output.element_size}](auto& incoming, const auto&) {
        TracedGradients gradients(2);
        gradients[0] = incoming[0];
        gradients[1] = Sum(rows, MemoryClass::kGradients);
        return gradients;
      });
  return output;
}

// Source: torch 2.11, aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_fwd and
// mha_bwd.
TracedTensor TraceOps::FlashAttention(const TracedTensor& query, const TracedTensor& key,
                                      const TracedTensor& value, const AttentionShape& shape) {
  TracedTensor output = tracer_.NewTensor(query.elements, query.element_size);
  const int64_t by_heads = shape.batch * shape.heads;
  TracedStorage logsumexp = tracer_.Allocate(kFloat * by_heads * shape.tokens);
  TracedStorage state = tracer_.Allocate(kFlashStateBytes);
  TracedStorage unused = tracer_.Allocate(kFlashUnusedBytes);
  if (shape.dropout > 0.0) state = tracer_.Allocate(kFlashStateBytes);
  const int64_t rounded = by_heads * RoundedUp(shape.tokens, kFlashQueries);
  output.edge = tracer_.Record(
      {query.edge, key.edge, value.edge},
      {key.storage, query.storage, value.storage, logsumexp, output.storage, state, unused},
      [this, bytes = output.bytes(), query_bytes = query.bytes(), key_bytes = key.bytes(),
       value_bytes = value.bytes(), copies = shape.copies_gradient, delta_bytes = kFloat * rounded,
       sum_bytes = kFloat * rounded * RoundedUp(shape.head_size, kFlashHeadSize)](auto&,
                                                                                  const auto&) {
        TracedGradients gradients(3);
        const int64_t copied = copies ? bytes : 0;  // of the gradient and of the output
        const TracedStorage first = tracer_.Allocate(copied, MemoryClass::kTemporary);
        const TracedStorage second = tracer_.Allocate(copied, MemoryClass::kTemporary);
        gradients[0] = tracer_.Allocate(query_bytes);
        gradients[1] = tracer_.Allocate(key_bytes);
        gradients[2] = tracer_.Allocate(value_bytes);
        const TracedStorage delta = tracer_.Allocate(delta_bytes, MemoryClass::kTemporary);
        tracer_.Touch(sum_bytes);
        return gradients;
      });
  for (TracedStorage* end : {&logsumexp, &state, &unused}) end->Reset();
  return output;
}

}  // namespace hpo
