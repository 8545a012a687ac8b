// Torch's CPU kernels where they allocate otherwise than CUDA's.
#include <algorithm>
#include <utility>
#include <vector>

#include "common/memory/trace/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;

// Rows of queries and keys that a thread of the fused kernel takes at a time
// (aten/src/ATen/native/cpu/FlashAttentionKernel.cpp).
struct FlashBlock {
  int64_t queries;
  int64_t keys;
};

FlashBlock FlashBlockOf(int64_t tokens) {
  const int64_t queries = tokens >= 768 ? 256 : tokens >= 192 ? 64 : 32;
  return {.queries = std::min(queries, tokens), .keys = std::min<int64_t>(512, tokens)};
}

}  // namespace

// x times the square root of its mean square, times the weight.
TracedTensor TraceOps::CpuRmsNorm(const TracedTensor& input, const TracedNorm& norm) {
  const int64_t rows = input.elements / norm.width;
  const int64_t row_bytes = kFloat * rows;
  const int64_t bytes = input.bytes();
  TracedTensor deviation;
  {
    TracedTensor square = tracer_.NewTensor(input.elements);
    square.edge = tracer_.Record({input.edge}, {input.storage}, [this, bytes](auto&, const auto&) {
      TracedStorage power = tracer_.Allocate(bytes, MemoryClass::kTemporary);
      TracedStorage twice;
      {
        const Number two(*this);
        twice = tracer_.Allocate(bytes, MemoryClass::kTemporary);
      }
      return OneGradient(tracer_.Allocate(bytes));
    });
    TracedTensor mean = tracer_.NewTensor(rows);
    mean.edge = tracer_.Record({square.edge}, {}, [this, bytes](auto&, const auto&) {
      const Number count(*this);
      return OneGradient(tracer_.Allocate(bytes));
    });
    { const Number count(*this); }
    { const Number eps(*this); }
    deviation = tracer_.NewTensor(rows);
    deviation.edge =
        tracer_.Record({mean.edge}, {deviation.storage}, [this, row_bytes](auto&, const auto&) {
          const TracedStorage cube = tracer_.Allocate(row_bytes, MemoryClass::kTemporary);
          TracedStorage half;
          {
            const Number factor(*this);
            half = tracer_.Allocate(row_bytes, MemoryClass::kTemporary);
          }
          return OneGradient(tracer_.Allocate(row_bytes));
        });
  }
  // Torch's sum of a gradient over what was repeated comes after both products.
  TracedTensor normed = tracer_.NewTensor(input.elements);
  normed.edge = tracer_.Record({deviation.edge, input.edge}, {deviation.storage, input.storage},
                               [this, bytes, row_bytes](auto&, const auto&) {
                                 TracedGradients gradients(2);
                                 const TracedStorage product =
                                     tracer_.Allocate(bytes, MemoryClass::kTemporary);
                                 gradients[1] = tracer_.Allocate(bytes);
                                 gradients[0] = tracer_.Allocate(row_bytes);
                                 return gradients;
                               });
  TracedTensor output = tracer_.NewTensor(input.elements);
  const bool trains = norm.weight.trainable;
  output.edge =
      tracer_.Record({norm.weight.Edge(), normed.edge}, {trains ? normed.storage : TracedStorage()},
                     [this, bytes, weight_bytes = trains ? norm.weight.bytes() : -1,
                      wanted = normed.edge.IsWanted()](auto&, const auto&) {
                       TracedGradients gradients(2);
                       TracedStorage product;
                       if (weight_bytes >= 0)
                         product = tracer_.Allocate(bytes, MemoryClass::kTemporary);
                       if (wanted) gradients[1] = tracer_.Allocate(bytes);
                       if (weight_bytes >= 0) {
                         gradients[0] = tracer_.Allocate(weight_bytes, MemoryClass::kGradients);
                       }
                       return gradients;
                     });
  return output;
}

TracedTensor TraceOps::CpuFlashAttention(const TracedTensor& query, const TracedTensor& key,
                                         const TracedTensor& value, const AttentionShape& shape,
                                         const TracedStorage& mask) {
  const FlashBlock block = FlashBlockOf(shape.tokens);
  const int64_t threads = std::max<int64_t>(1, traits_.threads_with_buffers);
  TracedTensor output = tracer_.NewTensor(shape.HiddenElements(), query.element_size);
  const TracedStorage logsumexp =
      tracer_.Allocate(kFloat * shape.batch * shape.heads * shape.tokens);
  // Scores of each thread; of 16 bits, a copy in that type.
  const int64_t scores = threads * block.queries * block.keys;
  const int64_t copied = query.element_size < kFloat ? query.element_size * scores : 0;
  {
    const TracedStorage buffer =
        tracer_.Allocate(kFloat * (scores + threads * block.queries * (2 + shape.head_size)),
                         MemoryClass::kTemporary);
    if (copied > 0) tracer_.Touch(copied);
  }
  output.edge = tracer_.Record(
      {query.edge, key.edge, value.edge},
      {mask, key.storage, query.storage, value.storage, logsumexp, output.storage},
      [this, shape, block, threads, scores, copied, bytes = output.bytes()](auto&, const auto&) {
        TracedGradients gradients(3);
        for (TracedStorage& gradient : gradients) gradient = tracer_.Allocate(bytes);
        const TracedStorage buffer = tracer_.Allocate(kFloat * 2 * scores, MemoryClass::kTemporary);
        TracedStorage copy;
        if (copied > 0) copy = tracer_.Allocate(2 * copied, MemoryClass::kTemporary);
        // One of each thread that has work.
        absl::InlinedVector<TracedStorage, 8> sums;
        for (int64_t i = 0; i < std::min(threads, shape.batch * shape.heads); ++i) {
          sums.push_back(tracer_.Allocate(kFloat * block.queries, MemoryClass::kTemporary));
        }
        sums.clear();
        return gradients;
      });
  return output;
}

// Backward, gradients of written-out attention come by heads: [batch * heads, ...]. As [batch *
// tokens, hidden] again they are views for one head, or for the key, whose gradient comes
// transposed, for one row; else copies. Fused attention gives them in the projections' layout.
TracedTensor TraceOps::SplitHeads(const TracedTensor& projected, const AttentionShape& shape,
                                  AttentionRole role) {
  if (!shape.written_out) return projected;
  const bool copies = role == AttentionRole::kKey ? shape.batch > 1 : shape.heads > 1;
  return Relayout(projected, /*copies=*/false, copies);
}

// An adapter's sum passes the key's gradient on as it comes.
TracedTensor TraceOps::ProjectKeys(const TracedTensor& input, const TracedLinear& layer,
                                   const AttentionShape& shape) {
  if (!layer.adapter.has_value() || !shape.written_out || shape.batch == 1) {
    return SplitHeads(Linear(input, layer), shape, AttentionRole::kKey);
  }
  TracedLinear copying = layer;
  copying.copies_gradient = true;
  return Relayout(Linear(input, copying), /*copies=*/false, /*copies_back=*/false);
}

TracedTensor TraceOps::WrittenAttention(const TracedTensor& query, const TracedTensor& key,
                                        const TracedTensor& value, const AttentionShape& shape) {
  TracedTensor scores;
  {
    const TracedTensor cast_key = CastForProduct(key);
    const TracedTensor cast_query = CastForProduct(query);
    const TracedTensor q = ByHeads(cast_query, shape);
    const bool is_cast = cast_key.element_size != key.element_size;
    const bool by_heads = shape.keys_by_heads || (shape.keys_are_repeated_views && is_cast);
    const TracedTensor k = by_heads ? cast_key : ByHeads(cast_key, shape);
    scores = BatchedProduct(q, k, shape.ScoreElements());
  }
  return AttendByScores(std::move(scores), value, shape);
}

std::vector<TracedTensor> TraceOps::SplitGroups(const TracedTensor& input, const PackedRows& rows) {
  const GradientEdge edge = tracer_.Record({input.edge}, {},
                                           [this, bytes = input.bytes()](auto&, const auto&) {
                                             return OneGradient(tracer_.Allocate(bytes));
                                           },
                                           {.num_outputs = static_cast<int32_t>(rows.size())});
  const int64_t width = input.elements / TotalTokens(rows);
  std::vector<TracedTensor> views;
  for (const RowGroup& group : rows) {
    TracedTensor view = input;
    view.elements = width * group.TotalTokens();
    view.edge = edge;
    view.edge.output = static_cast<int32_t>(views.size());
    views.push_back(std::move(view));
  }
  return views;
}

TracedTensor TraceOps::Concatenate(const std::vector<TracedTensor>& parts) {
  absl::InlinedVector<GradientEdge, 4> edges;
  int64_t elements = 0;
  for (const TracedTensor& part : parts) {
    edges.push_back(part.edge);
    elements += part.elements;
  }
  TracedTensor output = tracer_.NewTensor(elements, parts.front().element_size);
  output.edge =
      tracer_.Record(std::move(edges), {}, [num_parts = parts.size()](auto& incoming, const auto&) {
        return TracedGradients(num_parts, incoming[0].AsView());
      });
  return output;
}

TracedTensor TraceOps::GroupedAttention(const TracedTensor& query, const TracedTensor& key,
                                        const TracedTensor& value, const AttentionShape& shape,
                                        const PackedRows& rows) {
  const std::vector<TracedTensor> queries = SplitGroups(query, rows);
  const std::vector<TracedTensor> keys = SplitGroups(key, rows);
  const std::vector<TracedTensor> values = SplitGroups(value, rows);
  std::vector<TracedTensor> attended;
  for (size_t i = 0; i < rows.size(); ++i) {
    AttentionShape group = shape;
    group.batch = rows[i].rows;
    group.tokens = rows[i].tokens;
    const TracedTensor v = SplitHeads(values[i], group, AttentionRole::kValue);
    const TracedTensor k = SplitHeads(keys[i], group, AttentionRole::kKey);
    const TracedTensor q = SplitHeads(queries[i], group, AttentionRole::kQuery);
    attended.push_back(Relayout(Attention(q, k, v, group),
                                /*copies=*/group.written_out && group.heads > 1,
                                /*copies_back=*/false));
  }
  return Concatenate(attended);
}

}  // namespace hpo
