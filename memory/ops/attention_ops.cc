// Tested by tests/worker/trainer/memory_trace_test.cc.
#include "memory/ops/attention_ops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "memory/ops/attention_scratch.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory::ops {
namespace {

// Flash attention's backward rounds queries and head sizes up to these.
constexpr int64_t kFlashQueries = 128;
constexpr int64_t kFlashHeadSize = 32;
// The generator's state, and what nobody uses.
constexpr int64_t kFlashStateBytes = 16;
constexpr int64_t kFlashUnusedBytes = 8;
// The fused kernels round the number of queries up to this for the log-sum-exp.
constexpr int64_t kQueryBlock = 32;
// Elements of a mask's row that the efficient kernel reads at once.
constexpr int64_t kMaskStep = 8;

int64_t RoundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Rows of queries and keys that a thread of a CPU's kernel takes at a time.
struct FlashBlock {
  int64_t queries;
  int64_t keys;
};

FlashBlock FlashBlockOf(int64_t tokens) {
  const int64_t queries = tokens >= 768 ? 256 : tokens >= 192 ? 64 : 32;
  return {.queries = std::min(queries, tokens), .keys = std::min<int64_t>(512, tokens)};
}

int64_t InBlocks(int64_t queries) { return RoundedUp(queries, kQueryBlock); }

// Where the efficient kernel cannot read a mask's rows, they are copied, padded.
TracedStorage AlignedMask(TracedDevice& device, const TracedStorage& mask,
                          const TracedTensor& query, const AttentionShape& shape) {
  const int64_t columns = RoundedUp(shape.tokens, kMaskStep);
  const int64_t bytes = query.element_size * shape.batch * shape.tokens * columns;
  if (!mask || columns == shape.tokens || mask.bytes() >= bytes) return mask;
  return device.Allocate(bytes);
}

EfficientAttention EfficientOf(const TracedDevice& device, const TracedTensor& query,
                               const AttentionShape& shape) {
  return {.batch = shape.batch,
          .heads = shape.heads,
          .tokens = shape.tokens,
          .head_size = shape.head_size,
          .element_size = query.element_size,
          .dropout = shape.dropout > 0.0,
          .capability = device.traits().capability};
}

AttentionKernel AttentionKernelOf(const TracedDevice& device, int64_t element_size,
                                  int64_t head_size, bool masked) {
  const AttentionKernels& all = device.traits().attention;
  const AttentionPair& pair = element_size == kFloatBytes ? all.float32
                              : device.float16()          ? all.float16
                                                          : all.bfloat16;
  const AttentionKernel kernel = masked ? pair.masked : pair.plain;
  if (kernel != AttentionKernel::kEfficient) return kernel;
  return head_size % LeastHeadSize(device.traits().capability, element_size) == 0
             ? AttentionKernel::kEfficient
             : AttentionKernel::kMath;
}

// ---- Fused kernels; their inputs come in the type that they compute in -------------------------

// What the efficient kernel and cuDNN's add to their output: the log-sum-exp that they keep
// and the products of gradients and outputs, in floats, and the bytes of backward's blocks.
struct FusedBuffers {
  bool flash = false;
  int64_t logsumexp = 0;
  int64_t delta = 0;
  bool copies_delta = false;  // where it is summed by tokens and heads
  int64_t blocks = 0;
  TracedStorage mask;
};

// Source: torch 2.11, aten/src/ATen/native/transformers/cuda/attention.cu and
// attention_backward.cu.
TracedTensor FusedAttention(TracedDevice& device, const TracedTensor& query,
                            const TracedTensor& key, const TracedTensor& value,
                            const FusedBuffers& buffers) {
  TracedTensor output = device.NewTensor(query.elements, query.element_size);
  // Flash makes it whether it is wanted or not.
  const bool is_wanted = device.tracer().recording() &&
                         (query.edge.IsWanted() || key.edge.IsWanted() || value.edge.IsWanted());
  TracedStorage logsumexp;
  if (buffers.flash || is_wanted) logsumexp = device.Allocate(kFloatBytes * buffers.logsumexp);
  output.edge = device.Record(
      {query.edge, key.edge, value.edge},
      {buffers.mask, key.storage, query.storage, value.storage, logsumexp, output.storage},
      [&device, bytes = output.bytes(), query_bytes = query.bytes(), key_bytes = key.bytes(),
       value_bytes = value.bytes(), delta_bytes = kFloatBytes * buffers.delta,
       copies_delta = buffers.copies_delta, blocks = buffers.blocks,
       writes_product = !buffers.flash && query.element_size == kFloatBytes](auto&, const auto&) {
        TracedGradients gradients(3);
        const auto temporary = [&device](int64_t size) {
          return device.Allocate(size, MemoryClass::kTemporary);
        };
        gradients[0] = device.Allocate(query_bytes);
        gradients[1] = device.Allocate(key_bytes);
        gradients[2] = device.Allocate(value_bytes);
        TracedStorage delta;
        if (writes_product) {
          const TracedStorage product = temporary(bytes);
          delta = temporary(delta_bytes);
          if (copies_delta) delta = temporary(delta_bytes);
        } else {
          delta = temporary(delta_bytes);
        }
        TracedStorage meeting;
        if (blocks > 0) meeting = temporary(blocks);
        delta.Reset();
        return gradients;
      });
  return output;
}

// Source: torch 2.11, aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_fwd and
// mha_bwd.
TracedTensor FlashAttention(TracedDevice& device, const TracedTensor& query,
                            const TracedTensor& key, const TracedTensor& value,
                            const AttentionShape& shape) {
  TracedTensor output = device.NewTensor(query.elements, query.element_size);
  const int64_t by_heads = shape.batch * shape.heads;
  TracedStorage logsumexp = device.Allocate(kFloatBytes * by_heads * shape.tokens);
  TracedStorage state = device.Allocate(kFlashStateBytes);
  TracedStorage unused = device.Allocate(kFlashUnusedBytes);
  if (shape.dropout > 0.0) state = device.Allocate(kFlashStateBytes);
  const int64_t rounded = by_heads * RoundedUp(shape.tokens, kFlashQueries);
  output.edge = device.Record(
      {query.edge, key.edge, value.edge},
      {key.storage, query.storage, value.storage, logsumexp, output.storage, state, unused},
      [&device, query_bytes = query.bytes(), key_bytes = key.bytes(), value_bytes = value.bytes(),
       delta_bytes = kFloatBytes * rounded,
       sum_bytes = kFloatBytes * rounded * RoundedUp(shape.head_size, kFlashHeadSize)](
          auto&, const auto&) {
        TracedGradients gradients(3);
        gradients[0] = device.Allocate(query_bytes);
        gradients[1] = device.Allocate(key_bytes);
        gradients[2] = device.Allocate(value_bytes);
        const TracedStorage delta = device.Allocate(delta_bytes, MemoryClass::kTemporary);
        device.Touch(sum_bytes);
        return gradients;
      });
  for (TracedStorage* end : {&logsumexp, &state, &unused}) end->Reset();
  return output;
}

// Source: torch 2.11, aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
TracedTensor CpuFlashAttention(TracedDevice& device, const TracedTensor& query,
                               const TracedTensor& key, const TracedTensor& value,
                               const AttentionShape& shape, const TracedStorage& mask) {
  const FlashBlock block = FlashBlockOf(shape.tokens);
  const int64_t threads = std::max<int64_t>(1, device.traits().threads_with_buffers);
  TracedTensor output = device.NewTensor(shape.HiddenElements(), query.element_size);
  const TracedStorage logsumexp =
      device.Allocate(kFloatBytes * shape.batch * shape.heads * shape.tokens);
  // Scores of each thread; of 16 bits, a copy in that type.
  const int64_t scores = threads * block.queries * block.keys;
  const int64_t copied = query.element_size < kFloatBytes ? query.element_size * scores : 0;
  {
    const TracedStorage buffer =
        device.Allocate(kFloatBytes * (scores + threads * block.queries * (2 + shape.head_size)),
                        MemoryClass::kTemporary);
    if (copied > 0) device.Touch(copied);
  }
  output.edge = device.Record(
      {query.edge, key.edge, value.edge},
      {mask, key.storage, query.storage, value.storage, logsumexp, output.storage},
      [&device, shape, block, threads, scores, copied, bytes = output.bytes()](auto&, const auto&) {
        TracedGradients gradients(3);
        for (TracedStorage& gradient : gradients) gradient = device.Allocate(bytes);
        const TracedStorage buffer =
            device.Allocate(kFloatBytes * 2 * scores, MemoryClass::kTemporary);
        TracedStorage copy;
        if (copied > 0) copy = device.Allocate(2 * copied, MemoryClass::kTemporary);
        // One of each thread that has work.
        absl::InlinedVector<TracedStorage, 8> sums;
        for (int64_t i = 0; i < std::min(threads, shape.batch * shape.heads); ++i) {
          sums.push_back(device.Allocate(kFloatBytes * block.queries, MemoryClass::kTemporary));
        }
        sums.clear();
        return gradients;
      });
  return output;
}

// ---- Written out --------------------------------------------------------------------------------

// `element_size`: of the result.
TracedTensor Softmax(TracedDevice& device, const TracedTensor& input, int64_t element_size) {
  TracedTensor output = device.NewTensor(input.elements, element_size);
  output.edge = device.Record(
      {input.edge}, {output.storage},
      [&device, bytes = input.bytes(), output_bytes = output.bytes()](auto&, const auto&) {
        TracedStorage gradient = device.Allocate(bytes);
        // On a card the product of the output and its gradient.
        if (!device.traits().cpu) device.Touch(output_bytes);
        return OneGradient(std::move(gradient));
      });
  return output;
}

// softmax(q k^T) v, each step written out.
TracedTensor MathAttention(TracedDevice& device, const TracedTensor& query, const TracedTensor& key,
                           const TracedTensor& value, const AttentionShape& shape) {
  const int64_t score_elements = shape.batch * shape.heads * shape.tokens * shape.tokens;
  TracedTensor probabilities;
  {
    const TracedTensor scaled_query = Scale(device, query);
    const TracedTensor scaled_key = Scale(device, key);
    TracedTensor scores = BatchedProduct(device, scaled_query, scaled_key, score_elements);
    scores = CastToFloat(device, scores);
    probabilities = Softmax(device, scores, scores.element_size);
    // Where all of a row is masked the result is 0.
    const TracedStorage is_masked = device.Allocate(scores.elements, MemoryClass::kTemporary);
    const TracedStorage rows =
        device.Allocate(scores.elements / shape.tokens, MemoryClass::kTemporary);
    device.Touch(scores.element_size);
  }
  const TracedTensor dropped =
      Cast(device, Dropout(device, probabilities, shape.dropout), query.element_size);
  probabilities.storage.Reset();
  return BatchedProduct(device, dropped, value, shape.HiddenElements());
}

// As worker/trainer/models/layers/attention.cc writes it out.
TracedTensor WrittenAttention(TracedDevice& device, const TracedTensor& query,
                              const TracedTensor& key, const TracedTensor& value,
                              const AttentionShape& shape) {
  TracedTensor scores;
  {
    const TracedTensor cast_key = CastForProduct(device, key);
    const TracedTensor cast_query = CastForProduct(device, query);
    const TracedTensor q = ByHeads(device, cast_query, shape);
    const bool is_cast = cast_key.element_size != key.element_size;
    const bool by_heads = shape.keys_by_heads || (shape.keys_are_repeated_views && is_cast);
    const TracedTensor k = by_heads ? cast_key : ByHeads(device, cast_key, shape);
    scores = BatchedProduct(device, q, k, shape.ScoreElements());
  }
  return AttendByScores(device, std::move(scores), value, shape);
}

// Views of the groups' rows; backward puts their gradients side by side.
std::vector<TracedTensor> SplitGroups(TracedDevice& device, const TracedTensor& input,
                                      const PackedRows& rows) {
  const GradientEdge edge = device.Record({input.edge}, {},
                                          [&device, bytes = input.bytes()](auto&, const auto&) {
                                            return OneGradient(device.Allocate(bytes));
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

// One behind the other.
TracedTensor Concatenate(TracedDevice& device, const std::vector<TracedTensor>& parts) {
  absl::InlinedVector<GradientEdge, 4> edges;
  int64_t elements = 0;
  for (const TracedTensor& part : parts) {
    edges.push_back(part.edge);
    elements += part.elements;
  }
  TracedTensor output = device.NewTensor(elements, parts.front().element_size);
  output.edge =
      device.Record(std::move(edges), {}, [num_parts = parts.size()](auto& incoming, const auto&) {
        return TracedGradients(num_parts, incoming[0].AsView());
      });
  return output;
}

TracedTensor GroupedAttention(TracedDevice& device, const TracedTensor& query,
                              const TracedTensor& key, const TracedTensor& value,
                              const AttentionShape& shape, const PackedRows& rows) {
  const std::vector<TracedTensor> queries = SplitGroups(device, query, rows);
  const std::vector<TracedTensor> keys = SplitGroups(device, key, rows);
  const std::vector<TracedTensor> values = SplitGroups(device, value, rows);
  std::vector<TracedTensor> attended;
  for (size_t i = 0; i < rows.size(); ++i) {
    AttentionShape group = shape;
    group.batch = rows[i].rows;
    group.tokens = rows[i].tokens;
    const TracedTensor v = SplitHeads(device, values[i], group, AttentionRole::kValue);
    const TracedTensor k = SplitHeads(device, keys[i], group, AttentionRole::kKey);
    const TracedTensor q = SplitHeads(device, queries[i], group, AttentionRole::kQuery);
    attended.push_back(Relayout(device, Attention(device, q, k, v, group),
                                /*copies=*/group.written_out && group.heads > 1,
                                /*copies_back=*/false));
  }
  return Concatenate(device, attended);
}

}  // namespace

// Backward, gradients of written-out attention come by heads: [batch * heads, ...]. As [batch *
// tokens, hidden] again they are views for one head, or for the key, whose gradient comes
// transposed, for one row; else copies. Fused attention gives them in the projections' layout.
TracedTensor SplitHeads(TracedDevice& device, const TracedTensor& projected,
                        const AttentionShape& shape, AttentionRole role) {
  if (!shape.written_out) return projected;
  const bool copies = role == AttentionRole::kKey ? shape.batch > 1 : shape.heads > 1;
  return Relayout(device, projected, /*copies=*/false, copies);
}

// An adapter's sum passes the key's gradient on as it comes.
TracedTensor ProjectKeys(TracedDevice& device, const TracedTensor& input, const TracedLinear& layer,
                         const AttentionShape& shape) {
  if (!layer.adapter.has_value() || !shape.written_out || shape.batch == 1) {
    return SplitHeads(device, Linear(device, input, layer), shape, AttentionRole::kKey);
  }
  TracedLinear copying = layer;
  copying.copies_gradient = true;
  return Relayout(device, Linear(device, input, copying), /*copies=*/false, /*copies_back=*/false);
}

// The inputs keep the layout of [batch, tokens, hidden]; products want [batch * heads, ...]: a view
// where one of the two is 1, else a copy.
TracedTensor ByHeads(TracedDevice& device, const TracedTensor& projected,
                     const AttentionShape& shape) {
  const bool copies = shape.batch > 1 && shape.heads > 1;
  return Relayout(device, projected, copies, /*copies_back=*/false);
}

bool WritesOutAttention(const TracedDevice& device, const AttentionShape& shape) {
  if (device.traits().cpu) return shape.dropout > 0.0;
  return AttentionKernelOf(device, device.in_autocast() ? kHalfBytes : kFloatBytes, shape.head_size,
                           /*masked=*/true) == AttentionKernel::kMath;
}

TracedTensor Attention(TracedDevice& device, const TracedTensor& query, const TracedTensor& key,
                       const TracedTensor& value, const AttentionShape& shape,
                       const TracedStorage& mask) {
  if (shape.written_out) return WrittenAttention(device, query, key, value, shape);
  // The last argument is cast first.
  const TracedTensor v = CastForProduct(device, value);
  const TracedTensor k = CastForProduct(device, key);
  const TracedTensor q = CastForProduct(device, query);
  if (device.traits().cpu) return CpuFlashAttention(device, q, k, v, shape, mask);
  const AttentionKernel kernel =
      AttentionKernelOf(device, q.element_size, shape.head_size, static_cast<bool>(mask));
  if (kernel == AttentionKernel::kMath) return MathAttention(device, q, k, v, shape);
  if (kernel == AttentionKernel::kFlash) return FlashAttention(device, q, k, v, shape);
  const bool flash = kernel != AttentionKernel::kEfficient;
  const int64_t by_heads = shape.batch * shape.heads;
  const TracedStorage bias = AlignedMask(device, mask, q, shape);
  return FusedAttention(
      device, q, k, v,
      {.flash = flash,
       .logsumexp = by_heads * (flash ? shape.tokens : InBlocks(shape.tokens)),
       .delta = by_heads * shape.tokens,
       .copies_delta = shape.heads > 1 && shape.tokens > 1,
       .blocks = flash ? 0 : EfficientBackwardBytes(EfficientOf(device, q, shape)),
       .mask = bias});
}

TracedTensor PackedAttention(TracedDevice& device, const TracedTensor& query,
                             const TracedTensor& key, const TracedTensor& value,
                             const AttentionShape& shape, const PackedRows& rows) {
  if (device.traits().cpu || shape.written_out)
    return GroupedAttention(device, query, key, value, shape, rows);
  EfficientAttention attention = EfficientOf(device, query, shape);
  attention.batch = NumRows(rows);
  attention.tokens = LongestRow(rows);
  return FusedAttention(device, query, key, value,
                        {.logsumexp = NumRows(rows) * shape.heads * InBlocks(LongestRow(rows)),
                         .delta = shape.heads * TotalTokens(rows),
                         .copies_delta = shape.heads > 1 && TotalTokens(rows) > 1,
                         .blocks = EfficientBackwardBytes(attention)});
}

TracedTensor AttendByScores(TracedDevice& device, TracedTensor scores, const TracedTensor& value,
                            const AttentionShape& shape) {
  scores = ScaleInPlace(device, std::move(scores));
  // Autocast of a card computes it in float32, of bfloat16 by a copy, and casts the result for the
  // product.
  const bool widens = device.in_autocast() && !device.traits().cpu;
  TracedTensor probabilities;
  {
    const TracedTensor input = widens && !device.float16() ? CastToFloat(device, scores) : scores;
    probabilities = Softmax(device, input, widens ? kFloatBytes : input.element_size);
  }
  scores = {};
  const TracedTensor dropped = Dropout(device, probabilities, shape.dropout);
  const TracedTensor factor = widens ? CastForProduct(device, dropped) : dropped;
  const TracedTensor v = shape.keys_by_heads ? value : ByHeads(device, value, shape);
  const TracedTensor context = BatchedProduct(device, factor, v, shape.HiddenElements());
  // Backward: the gradient by heads, before the product's.
  return Relayout(device, context, /*copies=*/false, shape.batch > 1 && shape.heads > 1);
}

}  // namespace hpo::memory::ops
