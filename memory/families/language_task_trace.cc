// Tested by tests/worker/trainer/memory_trace_tasks_test.cc.
#include "memory/families/language_task_trace.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/models/model_parameters.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/loss_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/recomputation_trace.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

constexpr const char* kOwnHead = "lm_head.weight";  // of a model that does not tie it

class LanguageTrace final : public TaskTrace {
 public:
  LanguageTrace(TracedDevice& device, const ClassifierShape& shape)
      : device_(device), shape_(shape) {
    auto tensors = ParameterTensors(shape.model, HeadOf(TaskKind::kLanguageModeling));
    HPO_CHECK(tensors.ok());
    // Made after the backbone.
    std::erase_if(*tensors, [](const ParameterTensor& tensor) { return tensor.name == kOwnHead; });
    device.SetFloat16(shape.execution.precision == Precision::kFloat16);
    parameters_ = std::make_unique<ModelParameters>(
        device, *tensors,
        [&shape](const ParameterTensor& tensor) { return IsTrained(tensor, shape); },
        BaseOf(shape));
    KeepConstants(device, shape.model);
    const std::optional<TracedLinear> own_head = MakeOwnHead();
    const std::string words = WordEmbeddings(*tensors);
    if (shape.lora.has_value()) {
      const TracedAdapters adapters = AdaptersOf(shape.model, *shape.lora);
      parameters_->AddAdapters(device, adapters);
      *tensors = adapters.tensors;
    }
    AddTrained(*tensors, *parameters_, groups_);
    if (own_head.has_value()) groups_.decaying.push_back(own_head->weight);
    head_ = own_head.value_or(TracedLinear{.weight = parameters_->At(words),
                                           .in_features = shape.model.hidden_size,
                                           .out_features = shape.model.vocab_size});
    backbone_ = MakeBackboneTrace(device, shape.model, *parameters_);
    backbone_->SetExecution(shape.execution);
  }

  const TracedParameterGroups& groups() const override { return groups_; }
  const BackboneTrace& backbone() const override { return *backbone_; }

  TracedBatch BatchOf(const BatchShape& part) override {
    return BatchOnDevice(device_.tracer(), part, kIndexBytes * part.rows * part.tokens);
  }

  TracedTensor SumOfLosses(const TracedBatch& batch) override {
    return Loss(batch, /*training=*/true);
  }

  void Evaluate(const BatchShape& shape) override {
    const TracedBatch batch = BatchOf(shape);
    Loss(batch, /*training=*/false);
  }

 private:
  // nullopt: the word embeddings are it.
  std::optional<TracedLinear> MakeOwnHead() {
    if (shape_.model.tied_head) return std::nullopt;
    return ops::MakeLinear(device_, shape_.model.hidden_size, shape_.model.vocab_size,
                           /*bias=*/false);
  }

  std::string WordEmbeddings(const std::vector<ParameterTensor>& tensors) const {
    const auto words =
        std::find_if(tensors.begin(), tensors.end(), [this](const ParameterTensor& tensor) {
          return tensor.kind == ParameterKind::kEmbedding && tensor.rows == shape_.model.vocab_size;
        });
    return words->name;
  }

  TracedTensor Loss(const TracedBatch& batch, bool training) {
    const bool casts = shape_.execution.precision != Precision::kFloat32;
    if (casts) device_.EnterAutocast();
    const TracedTensor loss =
        ChunkedCrossEntropy(backbone_->Forward(batch, training), batch.Tokens());
    if (casts) device_.LeaveAutocast();
    return loss;
  }

  TracedTensor ChunkedCrossEntropy(const TracedTensor& features, int64_t tokens) {
    StepTracer& tracer = device_.tracer();
    TracedTensor sum = tracer.NewTensor(1);
    const int64_t at_once = shape_.loss_rows;
    const auto pieces = static_cast<int32_t>((tokens + at_once - 1) / at_once);
    const GradientEdge split =
        tracer.Record({features.edge}, {},
                      [&tracer, bytes = features.bytes()](auto&, const auto&) {
                        return OneGradient(tracer.Allocate(bytes));
                      },
                      {.num_outputs = pieces});
    for (int32_t i = 0; i < pieces; ++i) {
      const int64_t rows = std::min(at_once, tokens - i * at_once);
      TracedTensor piece = features;
      piece.elements = rows * shape_.model.hidden_size;
      piece.edge = {.node = split.node, .output = i};
      const auto segment = [this, rows](const std::vector<TracedTensor>& inputs) {
        const TracedTensor logits = ops::Cast(
            device_, ops::Linear(device_, inputs.front(), head_, /*rows_are_flattened=*/false),
            kFloatBytes);
        return ops::CrossEntropy(device_, logits, rows, shape_.model.vocab_size);
      };
      sum =
          ops::Add(device_, sum, RunRecomputed(device_, segment, {piece}, /*has_parameters=*/true));
    }
    return sum;
  }

  TracedDevice& device_;
  const ClassifierShape& shape_;
  TracedParameterGroups groups_;
  std::unique_ptr<ModelParameters> parameters_;
  std::unique_ptr<BackboneTrace> backbone_;
  TracedLinear head_;
};

}  // namespace

std::unique_ptr<TaskTrace> MakeLanguageTrace(TracedDevice& device, const ClassifierShape& shape) {
  return std::make_unique<LanguageTrace>(device, shape);
}

}  // namespace hpo::memory
