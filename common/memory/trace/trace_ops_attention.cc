// Attention, as a card's kernels run it and as our trainer writes it out.
#include <utility>

#include "common/memory/trace/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kHalf = 2;
// The fused kernels round the number of queries up to this for the log-sum-exp.
constexpr int64_t kQueryBlock = 32;

int64_t InBlocks(int64_t queries) {
  return (queries + kQueryBlock - 1) / kQueryBlock * kQueryBlock;
}

}  // namespace

TracedTensor TraceOps::Attention(const TracedTensor& query, const TracedTensor& key,
                                 const TracedTensor& value, const AttentionShape& shape,
                                 const TracedStorage& mask) {
  if (shape.written_out) return WrittenAttention(query, key, value, shape);
  // The last argument is cast first.
  const TracedTensor v = CastForProduct(value);
  const TracedTensor k = CastForProduct(key);
  const TracedTensor q = CastForProduct(query);
  if (traits_.cpu) return CpuFlashAttention(q, k, v, shape, mask);
  const AttentionKernel kernel =
      AttentionKernelOf(q.element_size, shape.head_size, static_cast<bool>(mask));
  if (kernel == AttentionKernel::kMath) return MathAttention(q, k, v, shape);
  if (kernel == AttentionKernel::kFlash) return FlashAttention(q, k, v, shape);
  const bool flash = kernel != AttentionKernel::kEfficient;
  const int64_t by_heads = shape.batch * shape.heads;
  const TracedStorage bias = AlignedMask(mask, q, shape);
  return FusedAttention(q, k, v,
                        {.flash = flash,
                         .logsumexp = by_heads * (flash ? shape.tokens : InBlocks(shape.tokens)),
                         .delta = by_heads * shape.tokens,
                         .copies_delta = shape.heads > 1 && shape.tokens > 1,
                         .copies_gradient = shape.copies_gradient,
                         .blocks = flash ? 0 : EfficientBackwardBytes(EfficientOf(q, shape)),
                         .mask = bias});
}

// Where the efficient kernel cannot read a mask's rows, they are copied, padded.
TracedStorage TraceOps::AlignedMask(const TracedStorage& mask, const TracedTensor& query,
                                    const AttentionShape& shape) {
  const int64_t step = traits_.mask_step;
  const int64_t columns = (shape.tokens + step - 1) / step * step;
  const int64_t bytes = query.element_size * shape.batch * shape.tokens * columns;
  if (!mask || columns == shape.tokens || mask.bytes() >= bytes) return mask;
  return tracer_.Allocate(bytes);
}

EfficientAttention TraceOps::EfficientOf(const TracedTensor& query,
                                         const AttentionShape& shape) const {
  return {.batch = shape.batch,
          .heads = shape.heads,
          .tokens = shape.tokens,
          .head_size = shape.head_size,
          .element_size = query.element_size,
          .dropout = shape.dropout > 0.0,
          .capability = traits_.capability};
}

bool TraceOps::WritesOutAttention(const AttentionShape& shape) const {
  if (traits_.cpu) return shape.dropout > 0.0;
  return AttentionKernelOf(autocast_ ? kHalf : kFloat, shape.head_size, /*masked=*/true) ==
         AttentionKernel::kMath;
}

AttentionKernel TraceOps::AttentionKernelOf(int64_t element_size, int64_t head_size,
                                            bool masked) const {
  const AttentionKernels& all = traits_.attention;
  const AttentionPair& pair = element_size == kFloat ? all.float32
                              : float16_             ? all.float16
                                                     : all.bfloat16;
  const AttentionKernel kernel = masked ? pair.masked : pair.plain;
  // Of a described step, which names one kernel: flash takes no mask.
  if (kernel != AttentionKernel::kEfficient && (kernel != AttentionKernel::kFlash || !masked)) {
    return kernel;
  }
  return head_size % LeastHeadSize(traits_.capability, element_size) == 0
             ? AttentionKernel::kEfficient
             : AttentionKernel::kMath;
}

// Source: torch 2.11, aten/src/ATen/native/transformers/cuda/attention.cu and
// attention_backward.cu.
TracedTensor TraceOps::PackedAttention(const TracedTensor& query, const TracedTensor& key,
                                       const TracedTensor& value, const AttentionShape& shape,
                                       const PackedRows& rows) {
  if (traits_.cpu || shape.written_out) return GroupedAttention(query, key, value, shape, rows);
  EfficientAttention attention = EfficientOf(query, shape);
  attention.batch = NumRows(rows);
  attention.tokens = LongestRow(rows);
  return FusedAttention(query, key, value,
                        {.logsumexp = NumRows(rows) * shape.heads * InBlocks(LongestRow(rows)),
                         .delta = shape.heads * TotalTokens(rows),
                         .copies_delta = shape.heads > 1 && TotalTokens(rows) > 1,
                         .blocks = EfficientBackwardBytes(attention)});
}

TracedTensor TraceOps::FusedAttention(const TracedTensor& query, const TracedTensor& key,
                                      const TracedTensor& value, const FusedBuffers& buffers) {
  TracedTensor output = tracer_.NewTensor(query.elements, query.element_size);
  // Flash makes it whether it is wanted or not.
  const bool is_wanted = tracer_.recording() &&
                         (query.edge.IsWanted() || key.edge.IsWanted() || value.edge.IsWanted());
  TracedStorage logsumexp;
  if (buffers.flash || is_wanted) logsumexp = tracer_.Allocate(kFloat * buffers.logsumexp);
  output.edge = tracer_.Record(
      {query.edge, key.edge, value.edge},
      {buffers.mask, key.storage, query.storage, value.storage, logsumexp, output.storage},
      [this, bytes = output.bytes(), query_bytes = query.bytes(), key_bytes = key.bytes(),
       value_bytes = value.bytes(), delta_bytes = kFloat * buffers.delta,
       copies_delta = buffers.copies_delta, copies_gradient = buffers.copies_gradient,
       blocks = buffers.blocks,
       writes_product = !buffers.flash && query.element_size == kFloat](auto&, const auto&) {
        TracedGradients gradients(3);
        const auto temporary = [this](int64_t size) {
          return tracer_.Allocate(size, MemoryClass::kTemporary);
        };
        TracedStorage copied;
        if (copies_gradient) copied = temporary(bytes);
        gradients[0] = tracer_.Allocate(query_bytes);
        gradients[1] = tracer_.Allocate(key_bytes);
        gradients[2] = tracer_.Allocate(value_bytes);
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

// The gradient of the second factor is made first. Each is kept for the other's.
TracedTensor TraceOps::BatchedProduct(const TracedTensor& a, const TracedTensor& b,
                                      int64_t elements) {
  const bool a_wanted = a.edge.IsWanted();
  const bool b_wanted = b.edge.IsWanted();
  TracedTensor output = tracer_.NewTensor(elements, a.element_size);
  output.edge = tracer_.Record(
      {a.edge, b.edge},
      {a_wanted ? b.storage : TracedStorage(), b_wanted ? a.storage : TracedStorage()},
      [this, a_bytes = a_wanted ? a.bytes() : -1, b_bytes = b_wanted ? b.bytes() : -1](
          auto&, const auto&) {
        TracedGradients gradients(2);
        if (b_bytes >= 0) gradients[1] = tracer_.Allocate(b_bytes);
        if (a_bytes >= 0) gradients[0] = tracer_.Allocate(a_bytes);
        return gradients;
      });
  return output;
}

// The inputs keep the layout of [batch, tokens, hidden]; products want [batch * heads, ...]: a view
// where one of the two is 1, else a copy.
TracedTensor TraceOps::ByHeads(const TracedTensor& projected, const AttentionShape& shape) {
  const bool copies = shape.batch > 1 && shape.heads > 1;
  return Relayout(projected, copies, /*copies_back=*/false);
}

TracedTensor TraceOps::AttendByScores(TracedTensor scores, const TracedTensor& value,
                                      const AttentionShape& shape) {
  scores = ScaleInPlace(std::move(scores));
  // Autocast of a card computes it in float32, of bfloat16 by a copy, and casts the result for the
  // product.
  const bool widens = autocast_ && !traits_.cpu;
  TracedTensor probabilities;
  {
    const TracedTensor input = widens && !float16_ ? CastToFloat(scores) : scores;
    probabilities = Softmax(input, widens ? kFloat : input.element_size);
  }
  scores = {};
  const TracedTensor dropped = Dropout(probabilities, shape.dropout);
  const TracedTensor factor = widens ? CastForProduct(dropped) : dropped;
  const TracedTensor v = shape.keys_by_heads ? value : ByHeads(value, shape);
  const TracedTensor context = BatchedProduct(factor, v, shape.HiddenElements());
  // Backward: the gradient by heads, before the product's.
  return Relayout(context, /*copies=*/false, shape.batch > 1 && shape.heads > 1);
}

TracedTensor TraceOps::Softmax(const TracedTensor& input, int64_t element_size) {
  TracedTensor output = tracer_.NewTensor(input.elements, element_size);
  output.edge = tracer_.Record(
      {input.edge}, {output.storage},
      [this, bytes = input.bytes(), output_bytes = output.bytes()](auto&, const auto&) {
        TracedStorage gradient = tracer_.Allocate(bytes);
        // On a card the product of the output and its gradient.
        if (!traits_.cpu) tracer_.Touch(output_bytes);
        return OneGradient(std::move(gradient));
      });
  return output;
}

// softmax(q k^T) v, each step written out.
TracedTensor TraceOps::MathAttention(const TracedTensor& query, const TracedTensor& key,
                                     const TracedTensor& value, const AttentionShape& shape) {
  const int64_t score_elements = shape.batch * shape.heads * shape.tokens * shape.tokens;
  TracedTensor probabilities;
  {
    const TracedTensor scaled_query = Scale(query);
    const TracedTensor scaled_key = Scale(key);
    TracedTensor scores = BatchedProduct(scaled_query, scaled_key, score_elements);
    scores = CastToFloat(scores);
    probabilities = Softmax(scores, scores.element_size);
    // Where all of a row is masked the result is 0.
    const TracedStorage is_masked = tracer_.Allocate(scores.elements, MemoryClass::kTemporary);
    const TracedStorage rows =
        tracer_.Allocate(scores.elements / shape.tokens, MemoryClass::kTemporary);
    tracer_.Touch(scores.element_size);
  }
  const TracedTensor dropped = Cast(Dropout(probabilities, shape.dropout), query.element_size);
  probabilities.storage.Reset();
  return BatchedProduct(dropped, value, shape.HiddenElements());
}

}  // namespace hpo
