// A training step that need not be ours, as data: what `hpo memory estimate --spec` reads. The
// format with an example: docs/step-description.md. Value types; pure; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "common/models/activation.h"
#include "common/models/model_parameters.h"
#include "memory/allocator/allocator_model.h"
#include "memory/need/device_defaults.h"
#include "memory/offline/traces/model_trace.h"
#include "memory/trace/kernel_traits.h"

namespace hpo::memory {

// Of a step, whatever their kinds.
inline constexpr int64_t kMostLayers = 4096;

// ---- Layers, in the order in which the input passes them
// -----------------------------------------

// What goes in, where it is no token ids: `width` numbers for each of the length's positions.
struct FeaturesLayer {
  int64_t width = 0;
};

// Channels of height x width numbers; of what follows the channels are the width, the places the
// positions.
struct ImageLayer {
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// Two-dimensional, on an image or another convolution's result. cuDNN's workspaces are not counted.
struct ConvolutionLayer {
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  bool bias = true;

  // Places along a side of `size`; below 1: the kernel is larger than that.
  int64_t SideOf(int64_t size) const { return (size + 2 * padding - kernel) / stride + 1; }
};

// Token ids to vectors.
struct EmbeddingLayer {
  int64_t rows = 0;
  int64_t width = 0;
};

// A learned vector for each of `rows` positions, added to the tokens' vectors.
struct PositionLayer {
  int64_t rows = 0;
};

// `count` equal encoder layers: self-attention and a feed-forward block of two linear layers, each
// with dropout, a residual sum and a LayerNorm. Memory is that of torch.nn.TransformerEncoderLayer.
struct EncoderLayers {
  int64_t count = 1;
  int64_t heads = 1;
  int64_t feed_forward = 0;
  bool norm_first = false;
  Activation activation = Activation::kRelu;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  // Each layer keeps its input only and runs forward again in backward.
  bool checkpointing = false;
};

struct LinearLayer {
  int64_t out = 0;
  bool bias = true;
};

struct ActivationLayer {
  Activation function = Activation::kGelu;
};

struct DropoutLayer {
  double probability = 0.0;
};

struct NormLayer {};

// [batch, tokens, width] to [batch, width].
struct PoolingLayer {
  enum class Kind { kMean, kFirstToken };
  Kind kind = Kind::kMean;
};

// All positions' vectors as one.
struct FlattenLayer {};

// Products with the embedding's table or one of its own, a language model's logits in float32.
struct LanguageHeadLayer {
  bool tied = true;
};

using DescribedLayer =
    std::variant<EmbeddingLayer, FeaturesLayer, ImageLayer, ConvolutionLayer, PositionLayer,
                 EncoderLayers, LinearLayer, ActivationLayer, DropoutLayer, NormLayer, PoolingLayer,
                 FlattenLayer, LanguageHeadLayer>;

// A catalogued model as Hugging Face runs it (model_trace.h), every batch padded.
struct DescribedModel {
  ModelShape shape;
  TaskHead head = {.kind = TaskHead::Kind::kSequenceClassification};
  ModelTechniques techniques;
};

// An encoder is fine-tuned for classification, a decoder for language modelling.
DescribedModel DescribeModel(const ModelShape& shape);

// ---- Step
// ----------------------------------------------------------------------------------------

enum class StepOptimizer {
  kNone,         // no update: forward and backward alone
  kSgd,          // torch.optim.SGD without momentum
  kSgdMomentum,  // with momentum
  kAdamForeach,  // torch.optim.Adam and AdamW as they are by default on a GPU
  kAdamLoop,     // foreach=False; torch::optim::AdamW of LibTorch
  kAdamFused,    // fused=True
};

enum class StepPrecision {
  kFloat32,
  kHalf,      // weights, gradients and activations in 16 bits
  kAutocast,  // weights in float32, matrix products in 16 bits
};

struct DescribedDevice {
  Bytes base = kDefaultCudaBase;
  // What the device has for this process, base included.
  Bytes total{AllocatorOptions::kUnlimited};
  // Of each of the two threads that multiply matrices; cuBLAS's for compute capability 8.
  int64_t gemm_workspace = 8'519'680;
  // What its sums share work over; an A100's.
  int64_t multiprocessors = 108;
  int64_t threads_per_multiprocessor = 2048;
};

struct StepDescription {
  // One of the two.
  std::vector<DescribedLayer> layers;
  std::optional<DescribedModel> model;
  int64_t batch = 0;
  int64_t length = 0;        // tokens of every row
  int64_t accumulation = 1;  // forwards and backwards before each update
  // Rows of an epoch's last batch, where those are fewer: the last part of a step after the steps,
  // before one more.
  std::optional<int64_t> last_batch;
  StepOptimizer optimizer = StepOptimizer::kAdamForeach;
  StepPrecision precision = StepPrecision::kFloat32;
  bool float16 = false;  // whether its 16 bits are float16; bfloat16 else
  AttentionKernel attention = AttentionKernel::kEfficient;
  bool clips = false;  // gradients, by their norm
  // Steps that are replayed: from the second on the cache holds what the first left.
  int64_t steps = 3;
  // Forwards of training before the first step whose results are thrown away.
  int64_t warm_up_forwards = 0;
  // A forward without gradients before the first step; after each step.
  bool evaluates_first = false;
  bool evaluates = false;
  AllocatorOptions allocator;
  DescribedDevice device;
};

// By the names of the description, such as "adamw-fused" and "bfloat16-autocast".
//   InvalidArgument  another name; lists them
absl::StatusOr<StepOptimizer> OptimizerNamed(absl::string_view name);
absl::Status SetPrecision(absl::string_view name, StepDescription& step);

// Reads a description from JSON.
//   InvalidArgument  not JSON; a member missing, unknown, of another type, or out of range: sizes
//                    are positive and at most 2^31, layers at most 4096; layers that do not fit
//                    together (heads that do not divide the width, a first layer that is no
//                    embedding). Names `origin`, the member and the value
absl::StatusOr<StepDescription> ParseStepDescription(absl::string_view json,
                                                     absl::string_view origin);

}  // namespace hpo::memory
