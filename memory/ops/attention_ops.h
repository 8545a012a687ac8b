// Attention, as a card's fused kernels run it and as our trainer writes it out: see
// traced_device.h.
#pragma once

#include <cstdint>

#include "common/models/packed_rows.h"
#include "memory/ops/linear_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

// Shape of one attention: queries, keys and values are [batch, heads, tokens, head_size].
struct AttentionShape {
  int64_t batch = 0;
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t head_size = 0;
  double dropout = 0.0;
  bool written_out = false;    // by our trainer itself, in products by heads
  bool keys_by_heads = false;  // keys and values lie by heads already
  // They are views of one head for all queries, which a cast writes out.
  bool keys_are_repeated_views = false;
  int64_t HiddenElements() const { return batch * tokens * heads * head_size; }
  int64_t ScoreElements() const { return batch * heads * tokens * tokens; }
};

namespace ops {

// A projection, [batch, tokens, hidden], as one of the three inputs of Attention: a view.
enum class AttentionRole { kQuery, kKey, kValue };
TracedTensor SplitHeads(TracedDevice& device, const TracedTensor& projected,
                        const AttentionShape& shape, AttentionRole role);
// The keys' projection and its SplitHeads.
TracedTensor ProjectKeys(TracedDevice& device, const TracedTensor& input, const TracedLinear& layer,
                         const AttentionShape& shape);
// A projection as a product by heads takes it: copied where it has rows and heads.
TracedTensor ByHeads(TracedDevice& device, const TracedTensor& projected,
                     const AttentionShape& shape);
// Whether Attend and AttendPacked of worker/trainer/models/layers/attention.h write it out.
bool WritesOutAttention(const TracedDevice& device, const AttentionShape& shape);
// `mask`: what is added to the scores, kept for backward by the fused kernels; empty: none. With
// one, a card runs the efficient kernel in flash's place, which takes none.
TracedTensor Attention(TracedDevice& device, const TracedTensor& query, const TracedTensor& key,
                       const TracedTensor& value, const AttentionShape& shape,
                       const TracedStorage& mask = {});
// AttendPacked of worker/trainer/models/layers/attention.h. `shape`: that of the whole batch, whose
// rows and tokens are those of `rows`.
TracedTensor PackedAttention(TracedDevice& device, const TracedTensor& query,
                             const TracedTensor& key, const TracedTensor& value,
                             const AttentionShape& shape, const PackedRows& rows);
// AttendByScores of worker/trainer/models/layers/attention.h, on any device. `scores`: [batch,
// heads, tokens, tokens]; its gradient and the result come by heads.
TracedTensor AttendByScores(TracedDevice& device, TracedTensor scores, const TracedTensor& value,
                            const AttentionShape& shape);

}  // namespace ops
}  // namespace hpo::memory
