// Tested by tests/memory/known_model_step_test.cc.
#include "memory/offline/step_check.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "memory/allocator/allocation_timeline.h"
#include "memory/offline/step_description.h"
#include "memory/offline/traces/model_trace.h"

namespace hpo::memory {
namespace {

// Layers times steps: keeps an answer below a few seconds.
constexpr int64_t kMostLayerRuns = 20'000;

// Follows the width through the layers; also bounds every tensor.
class ShapeCheck {
 public:
  explicit ShapeCheck(const StepDescription& step) : step_(step) {}

  absl::Status Run() {
    if (step_.model.has_value()) return CheckModel(*step_.model);
    if (step_.layers.empty()) {
      return absl::InvalidArgumentError(
          "layers: expected an embedding, features or an image first, got no layer");
    }
    tokens_ = step_.length;
    for (size_t i = 0; i < step_.layers.size(); ++i) {
      if ((i == 0) != IsInput(step_.layers[i])) {
        return absl::InvalidArgumentError(
            absl::StrCat("layers[", i, "]: expected an embedding, features or an image ",
                         i == 0 ? "first" : "as the first layer alone"));
      }
      const absl::Status status =
          std::visit([this](const auto& layer) { return Check(layer); }, step_.layers[i]);
      HPO_RETURN_IF_ERROR(Annotate(status, absl::StrCat("layers[", i, "]")));
    }
    return CheckRuns();
  }

 private:
  absl::Status CheckRuns() const {
    const int64_t runs = num_layers_ * step_.steps;
    if (num_layers_ > kMostLayers || runs > kMostLayerRuns) {
      return absl::InvalidArgumentError(
          absl::StrCat("layers: expected at most ", kMostLayers, " and ", kMostLayerRuns,
                       " runs of a layer (layers x steps), got ", num_layers_, " and ", runs));
    }
    return absl::OkStatus();
  }

  // Every tensor of the model is smaller than one of these.
  absl::Status CheckModel(const DescribedModel& model) {
    const ModelShape& shape = model.shape;
    if (step_.length > shape.max_positions) {
      return absl::InvalidArgumentError(absl::StrCat("length: expected at most the model's ",
                                                     shape.max_positions, " positions, got ",
                                                     step_.length));
    }
    const int64_t rows = step_.batch;
    const int64_t widest = std::max(shape.hidden_size, shape.intermediate_size);
    const int64_t keys = std::max(step_.length + 8, 2 * shape.relative.span);
    HPO_RETURN_IF_ERROR(Bound({8, rows, step_.length, widest}));
    if (model.head.kind == TaskHead::Kind::kCausalLm) {
      HPO_RETURN_IF_ERROR(Bound({8, rows, step_.length, shape.vocab_size}));
    }
    HPO_RETURN_IF_ERROR(Bound({8, rows, shape.num_heads, step_.length, keys}));
    HPO_RETURN_IF_ERROR(Bound({8, rows, 2 * shape.relative.span, shape.hidden_size}));
    num_layers_ = shape.num_layers;
    return CheckRuns();
  }

  absl::Status Bound(std::initializer_list<int64_t> factors) {
    if (TensorBytes(factors) < kLargestTensorBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("expected tensors below ", FormatBytes(Bytes{kLargestTensorBytes}),
                     ", got one of ", absl::StrJoin(factors, " x "), " bytes"));
  }

  static bool IsInput(const DescribedLayer& layer) {
    return std::holds_alternative<EmbeddingLayer>(layer) ||
           std::holds_alternative<FeaturesLayer>(layer) ||
           std::holds_alternative<ImageLayer>(layer);
  }

  // Of the layer's result.
  absl::Status Becomes(int64_t width) {
    ++num_layers_;
    width_ = width;
    return Bound({8, step_.batch, tokens_, width_});
  }

  absl::Status Check(const EmbeddingLayer& layer) {
    HPO_RETURN_IF_ERROR(Becomes(layer.width));
    return Bound({8, layer.rows, layer.width});
  }
  absl::Status Check(const FeaturesLayer& layer) { return Becomes(layer.width); }
  absl::Status Check(const ImageLayer& layer) {
    sides_ = {layer.height, layer.width};
    tokens_ = 1;
    HPO_RETURN_IF_ERROR(Bound({8, layer.height, layer.width}));
    tokens_ = layer.height * layer.width;
    return Becomes(layer.channels);
  }
  absl::Status Check(const ConvolutionLayer& layer) {
    if (!sides_.has_value()) {
      return absl::InvalidArgumentError("expected an image or a convolution before it");
    }
    HPO_RETURN_IF_ERROR(Bound({8, layer.kernel, layer.kernel, width_, layer.out}));
    for (int64_t* const side : {&sides_->first, &sides_->second}) {
      const int64_t places = layer.SideOf(*side);
      if (places < 1 || *side + 2 * layer.padding < layer.kernel) {
        return absl::InvalidArgumentError(absl::StrCat("kernel: expected at most the padded side ",
                                                       *side + 2 * layer.padding, ", got ",
                                                       layer.kernel));
      }
      *side = places;
    }
    HPO_RETURN_IF_ERROR(Bound({8, sides_->first, sides_->second}));
    tokens_ = sides_->first * sides_->second;
    return Becomes(layer.out);
  }
  absl::Status Check(const PositionLayer& layer) {
    HPO_RETURN_IF_ERROR(EndImage());
    if (layer.rows < tokens_) {
      return absl::InvalidArgumentError(
          absl::StrCat("rows: expected at least the length ", tokens_, ", got ", layer.rows));
    }
    return Bound({8, layer.rows, width_});
  }
  absl::Status Check(const EncoderLayers& layer) {
    HPO_RETURN_IF_ERROR(EndImage());
    num_layers_ += layer.count;
    if (pooled_) return absl::InvalidArgumentError("expected no encoder after pooling");
    if (width_ % layer.heads != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("heads: expected a divisor of the width ", width_, ", got ", layer.heads));
    }
    HPO_RETURN_IF_ERROR(Bound({4, width_, std::max(3 * width_, layer.feed_forward)}));
    HPO_RETURN_IF_ERROR(Bound({4, step_.batch, tokens_, std::max(3 * width_, layer.feed_forward)}));
    const bool written_out = step_.attention == AttentionKernel::kMath;
    return Bound({4, step_.batch, layer.heads, tokens_, written_out ? tokens_ : 32});
  }
  absl::Status Check(const LinearLayer& layer) {
    HPO_RETURN_IF_ERROR(EndImage());
    HPO_RETURN_IF_ERROR(Bound({4, width_, layer.out}));
    return Becomes(layer.out);
  }
  absl::Status Check(const PoolingLayer&) {
    HPO_RETURN_IF_ERROR(EndImage());
    if (pooled_) return absl::InvalidArgumentError("expected one pooling, got a second");
    pooled_ = true;
    tokens_ = 1;
    return absl::OkStatus();
  }
  absl::Status Check(const FlattenLayer&) {
    HPO_RETURN_IF_ERROR(EndImage());
    HPO_RETURN_IF_ERROR(Bound({8, step_.batch, tokens_, width_}));
    width_ *= tokens_;
    tokens_ = 1;
    pooled_ = true;
    return absl::OkStatus();
  }
  absl::Status Check(const LanguageHeadLayer& layer) {
    const auto* const table = std::get_if<EmbeddingLayer>(&step_.layers.front());
    if (table == nullptr) {
      return absl::InvalidArgumentError("expected an embedding as the first layer with it");
    }
    if (layer.tied && table->width != width_) {
      return absl::InvalidArgumentError(
          absl::StrCat("tied: expected the embedding's width ", table->width, ", got ", width_));
    }
    return Becomes(table->rows);
  }
  template <typename Layer>
  absl::Status Check(const Layer&) {
    ++num_layers_;
    return absl::OkStatus();
  }

  // What follows takes places as positions.
  absl::Status EndImage() {
    const bool bare = sides_.has_value() && num_layers_ == 1;
    sides_.reset();
    if (!bare) return absl::OkStatus();
    return absl::InvalidArgumentError("expected a convolution after an image");
  }

  const StepDescription& step_;
  // Of the image or the convolution before.
  std::optional<std::pair<int64_t, int64_t>> sides_;
  int64_t tokens_ = 0;
  int64_t width_ = 0;
  int64_t num_layers_ = 0;
  bool pooled_ = false;
};

}  // namespace

absl::Status CheckStep(const StepDescription& step) {
  if (step.attention == AttentionKernel::kFlash && step.precision == StepPrecision::kFloat32) {
    return absl::InvalidArgumentError(
        "attention: expected efficient or math with float32, got flash, which takes 16-bit types");
  }
  if (step.model.has_value()) {
    HPO_RETURN_IF_ERROR(CheckHasTrace(step.model->shape, step.model->head, step.model->techniques));
  }
  return ShapeCheck(step).Run();
}

}  // namespace hpo::memory
