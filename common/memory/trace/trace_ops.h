// The operations that models are made of, as a StepTracer runs them: what each allocates in
// forward, keeps for backward, and allocates in backward. One method for each torch operation.
//
// Sizes: `rows` is the product of all dimensions but the last. Tensors are float32 unless their
// element size says otherwise; under autocast matrix products and attention run in 16 bits and
// norms, softmax and losses in float32, with torch's casts between them.
// On a CPU every event is torch's: tests/worker/trainer/memory_trace_test.cc compares them. Its
// kernels' own ways are in trace_ops_cpu.cc.
// Source: torch 2.11's kernels (aten/src/ATen/native), backward formulas
// (tools/autograd/derivatives.yaml) and autocast lists (aten/src/ATen/autocast_mode.h).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/memory/trace/attention_scratch.h"
#include "common/memory/trace/kernel_traits.h"
#include "common/memory/trace/lora.h"
#include "common/memory/trace/reduction_scratch.h"
#include "common/memory/trace/step_tracer.h"
#include "common/models/activation.h"
#include "common/models/packed_rows.h"

namespace hpo {

// A low-rank adapter beside a linear layer: a dropped-out input through `a`, then `b`, scaled.
struct TracedAdapter {
  TracedParameter a;  // [rank, in_features]
  TracedParameter b;  // [out_features, rank]
  int64_t rank = 0;
  double dropout = 0.0;
  // Peft's operations; else those of worker/trainer/models/adapters/low_rank_adapter.h.
  bool as_peft = true;
};

struct TracedLinear {
  TracedParameter weight;
  std::optional<TracedParameter> bias;
  int64_t in_features = 0;
  int64_t out_features = 0;
  std::optional<TracedAdapter> adapter;
  bool transposed = false;  // GPT-2's Conv1D, whose weight is [in_features, out_features]
  // Gradients of the output come transposed: each product with it copies them first.
  bool copies_gradient = false;
  // In fewer bits than it computes with (worker/trainer/models/adapters/stored_weight.h); kFloat32:
  // a parameter as any other. A stored weight is no tensor of the model: `weight` says its size
  // alone.
  FrozenStorage::Type stored = FrozenStorage::Type::kFloat32;
  bool by_bitsandbytes = false;  // stored in NF4 as that does it, not as our trainer does
};

// LayerNorm (bias) or RMSNorm (none).
struct TracedNorm {
  TracedParameter weight;
  std::optional<TracedParameter> bias;
  int64_t width = 0;
  // The output's gradient comes with rows and tokens swapped: a card's kernel copies it.
  bool copies_gradient = false;
};

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
  // The result's gradient comes in another layout than rows, tokens, heads, which a fused kernel of
  // a card copies.
  bool copies_gradient = false;
  int64_t HiddenElements() const { return batch * tokens * heads * head_size; }
  int64_t ScoreElements() const { return batch * heads * tokens * tokens; }
};

class TraceOps {
 public:
  // `tracer` outlives it.
  TraceOps(StepTracer& tracer, const KernelTraits& traits) : tracer_(tracer), traits_(traits) {}

  StepTracer& tracer() { return tracer_; }
  const KernelTraits& traits() const { return traits_; }

  // The device is warm: what libraries keep is there.
  void SetWarm() {
    forward_workspace_ = backward_workspace_ = true;
    bias_workspace_ = backward_bias_workspace_ = true;
  }

  // ---- Parameters ----

  TracedParameter Parameter(int64_t rows, int64_t columns = 1);
  TracedLinear MakeLinear(int64_t in_features, int64_t out_features, bool bias = true);
  TracedNorm MakeNorm(int64_t width, bool bias = true);
  // Of parameters made from now on.
  void SetParameterType(int64_t element_size, bool trainable) {
    parameter_size_ = element_size;
    trainable_ = trainable;
  }

  void SetTrainable(bool trainable) { trainable_ = trainable; }
  // Whether our trainer's adapters drop out what goes into them.
  void SetTraining(bool training) { training_ = training; }

  // ---- Autocast ----

  // Inside, matrix products and attention run in 16 bits; casts of weights are cached until the
  // end, or, as in worker/trainer/models/autocast.h, not.
  void EnterAutocast(bool caches_weights = true) {
    autocast_ = true;
    caches_weights_ = caches_weights;
  }
  void LeaveAutocast();
  // Whether its 16 bits are float16; bfloat16 else.
  void SetFloat16(bool float16) { float16_ = float16; }
  bool in_autocast() const { return autocast_; }
  // What a matrix product, and what a norm or softmax, takes in place of `input`.
  TracedTensor CastForProduct(const TracedTensor& input);
  TracedTensor CastToFloat(const TracedTensor& input);

  // ---- Operations ----

  TracedTensor Embedding(const TracedStorage& indices, int64_t num_indices,
                         const TracedParameter& table, int64_t width);
  // With its adapter, where it has one, as peft runs them.
  // `rows_are_flattened`: the input has more dimensions than a matrix.
  TracedTensor Linear(const TracedTensor& input, const TracedLinear& layer,
                      bool rows_are_flattened = true);
  // Of an input whose rows and tokens are swapped: a copy is multiplied, to whose result the bias,
  // which there is, is added in place.
  TracedTensor LinearOfTransposed(const TracedTensor& input, const TracedLinear& layer);
  TracedTensor LayerNorm(const TracedTensor& input, const TracedNorm& norm);
  // at::rms_norm: one kernel on a card, written out by torch on a CPU. `norm` has no bias.
  TracedTensor RmsNorm(const TracedTensor& input, const TracedNorm& norm);
  TracedTensor Dropout(const TracedTensor& input, double probability);
  TracedTensor Activate(const TracedTensor& input, Activation activation);
  // Sum of two tensors of one shape; the result has the wider type.
  TracedTensor Add(const TracedTensor& a, const TracedTensor& b);
  // Product of two tensors of one shape: keeps both.
  TracedTensor Multiply(const TracedTensor& a, const TracedTensor& b);
  // `a` and, repeated over it, the smaller `b`.
  TracedTensor AddRepeated(const TracedTensor& a, const TracedTensor& b);
  // A parameter of `elements` of the input, repeated over its rows, added to it.
  TracedTensor AddBroadcast(const TracedTensor& input, const TracedParameter& parameter);
  // A copy in another layout (contiguous, reshape); backward passes the gradient on as it is, or,
  // with `copies_back`, copies it too.
  TracedTensor Copy(const TracedTensor& input, bool copies_back = false);
  // As Copy, but where `copies` is false the result is a view of the input.
  TracedTensor Relayout(const TracedTensor& input, bool copies, bool copies_back);
  // Times or divided by a number.
  TracedTensor Scale(const TracedTensor& input) { return Scaled(input, /*in_place=*/false); }
  // As Scale, in place: nobody else looks at the input's values.
  TracedTensor ScaleInPlace(TracedTensor input) {
    return Scaled(std::move(input), /*in_place=*/true);
  }
  // To another element type; the same tensor where it has it already.
  TracedTensor Cast(const TracedTensor& input, int64_t element_size);
  // One of `parts` equal parts along a dimension, as a view; backward makes the whole gradient.
  TracedTensor Select(const TracedTensor& input, int64_t parts);
  // A projection, [batch, tokens, hidden], as one of the three inputs of Attention: a view.
  enum class AttentionRole { kQuery, kKey, kValue };
  TracedTensor SplitHeads(const TracedTensor& projected, const AttentionShape& shape,
                          AttentionRole role);
  // The keys' projection and its SplitHeads.
  TracedTensor ProjectKeys(const TracedTensor& input, const TracedLinear& layer,
                           const AttentionShape& shape);
  // AttendByScores of worker/trainer/models/attention.h, on any device. `scores`: [batch, heads,
  // tokens, tokens]; its gradient and the result come by heads.
  TracedTensor AttendByScores(TracedTensor scores, const TracedTensor& value,
                              const AttentionShape& shape);
  // Product of every query with every key, and the like: keeps both; the second's gradient is made
  // first.
  TracedTensor BatchedProduct(const TracedTensor& a, const TracedTensor& b, int64_t elements);
  // A projection as a product by heads takes it: copied where it has rows and heads.
  TracedTensor ByHeads(const TracedTensor& projected, const AttentionShape& shape);
  // Whether Attend and AttendPacked of worker/trainer/models/attention.h write it out.
  bool WritesOutAttention(const AttentionShape& shape) const;
  // `mask`: what is added to the scores, kept for backward by the fused kernels; empty: none. With
  // one, a card runs the efficient kernel in flash's place, which takes none.
  TracedTensor Attention(const TracedTensor& query, const TracedTensor& key,
                         const TracedTensor& value, const AttentionShape& shape,
                         const TracedStorage& mask = {});
  // AttendPacked of worker/trainer/models/attention.h. `shape`: that of the whole batch, whose rows
  // and tokens are those of `rows`.
  TracedTensor PackedAttention(const TracedTensor& query, const TracedTensor& key,
                               const TracedTensor& value, const AttentionShape& shape,
                               const PackedRows& rows);
  // What a sum takes beside its result.
  void TouchReductionScratch(const Reduction& reduction);
  // Mean over all but `groups` rows: [groups, *, width] to [groups, width].
  TracedTensor Mean(const TracedTensor& input, int64_t result_elements);
  // Mean cross entropy of [rows, classes]: one element. `labels`: kept, where nobody else does.
  TracedTensor CrossEntropy(const TracedTensor& logits, int64_t rows, int64_t classes,
                            const TracedStorage& labels = {});
  // How at::cross_entropy_loss is called: with weights of the classes, with label smoothing.
  struct LossOptions {
    bool weighted = false;
    bool smoothed = false;
  };
  // As CrossEntropy.
  TracedTensor ClassLoss(const TracedTensor& logits, int64_t rows, int64_t classes,
                         const LossOptions& options);
  // Sum over all elements of the binary cross entropy; `weights`: the elements of pos_weight.
  TracedTensor BinaryCrossEntropy(const TracedTensor& logits,
                                  const std::optional<int64_t>& weights = std::nullopt);
  // Sum over all elements of the squared error.
  TracedTensor SquaredError(const TracedTensor& predicted);

  // A number on its way into an operation with a tensor of `element_size`; 0: no conversion. Events
  // on a CPU alone.
  class Number {
   public:
    Number(TraceOps& ops, int64_t element_size = 4);

   private:
    TracedStorage as_given_;
    TracedStorage converted_;  // freed first
  };

 private:
  TracedTensor LinearAlone(const TracedTensor& input, const TracedLinear& layer,
                           bool rows_are_flattened);
  TracedTensor StoredLinear(const TracedTensor& input, const TracedLinear& layer,
                            bool rows_are_flattened);
  TracedTensor QuantizedLinear(const TracedTensor& input, const TracedLinear& layer);
  TracedStorage DequantizedValues(const TracedLinear& layer, int64_t element_size);
  // The values of a stored weight; empty where they are the storage itself.
  TracedStorage StoredValues(const TracedLinear& layer, int64_t element_size);
  TracedTensor AddAdapted(TracedTensor output, const TracedTensor& input, const TracedLinear& layer,
                          bool rows_are_flattened);
  TracedTensor AddPeftAdapted(TracedTensor output, const TracedTensor& input,
                              const TracedAdapter& adapter);
  // output + low times a number.
  TracedTensor AddScaled(const TracedTensor& output, const TracedTensor& low);
  TracedTensor SmoothedCrossEntropy(const TracedTensor& logits, int64_t rows, int64_t classes,
                                    bool weighted);
  TracedTensor NegativeSumOfRows(const TracedTensor& input, int64_t rows, bool weighted);
  TracedStorage IsIgnored(int64_t rows);
  void WeighPositives(int64_t bytes, int64_t weights);
  TracedStorage EmbeddingGradient(int64_t num_indices, int64_t width, const TracedParameter& table);
  TracedTensor FlashAttention(const TracedTensor& query, const TracedTensor& key,
                              const TracedTensor& value, const AttentionShape& shape);
  EfficientAttention EfficientOf(const TracedTensor& query, const AttentionShape& shape) const;
  AttentionKernel AttentionKernelOf(int64_t element_size, int64_t head_size, bool masked) const;
  // What a fused kernel of a card makes beside its output: the log-sum-exp that it keeps and the
  // products of gradients and outputs, in floats, and the bytes of its backward's blocks.
  struct FusedBuffers {
    bool flash = false;
    int64_t logsumexp = 0;
    int64_t delta = 0;
    bool copies_delta = false;  // where it is summed by tokens and heads
    bool copies_gradient = false;
    int64_t blocks = 0;
    TracedStorage mask;
  };
  TracedTensor FusedAttention(const TracedTensor& query, const TracedTensor& key,
                              const TracedTensor& value, const FusedBuffers& buffers);
  TracedTensor GroupedAttention(const TracedTensor& query, const TracedTensor& key,
                                const TracedTensor& value, const AttentionShape& shape,
                                const PackedRows& rows);
  // Views of the groups' rows; backward puts their gradients side by side.
  std::vector<TracedTensor> SplitGroups(const TracedTensor& input, const PackedRows& rows);
  // One behind the other.
  TracedTensor Concatenate(const std::vector<TracedTensor>& parts);
  TracedTensor MathAttention(const TracedTensor& query, const TracedTensor& key,
                             const TracedTensor& value, const AttentionShape& shape);
  // `element_size`: of the result.
  TracedTensor Softmax(const TracedTensor& input, int64_t element_size);
  TracedStorage AlignedMask(const TracedStorage& mask, const TracedTensor& query,
                            const AttentionShape& shape);
  TracedTensor Scaled(TracedTensor x, bool in_place);
  TracedTensor CpuRmsNorm(const TracedTensor& input, const TracedNorm& norm);
  TracedTensor CpuFlashAttention(const TracedTensor& query, const TracedTensor& key,
                                 const TracedTensor& value, const AttentionShape& shape,
                                 const TracedStorage& mask);
  // As worker/trainer/models/attention.cc writes it out.
  TracedTensor WrittenAttention(const TracedTensor& query, const TracedTensor& key,
                                const TracedTensor& value, const AttentionShape& shape);
  TracedTensor WeightFor(const TracedParameter& parameter, int64_t element_size);
  void TouchWorkspace(bool& exists);
  // What the forward product of `layer` takes, after its result.
  void TouchProductWorkspace(const TracedLinear& layer);
  // The sum of a matrix over its rows (or columns): `result`, allocated with what torch takes for
  // it.
  TracedStorage Sum(const Reduction& reduction, MemoryClass result);

  StepTracer& tracer_;
  KernelTraits traits_;
  int64_t parameter_size_ = 4;
  bool trainable_ = true;
  bool training_ = true;
  bool autocast_ = false;
  bool float16_ = false;
  bool caches_weights_ = true;
  std::vector<TracedTensor> cast_weights_;  // by parameter; empty ones are not cast yet
  bool forward_workspace_ = false;
  bool backward_workspace_ = false;
  bool bias_workspace_ = false;
  bool backward_bias_workspace_ = false;
};

}  // namespace hpo
