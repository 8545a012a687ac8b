#include "memory/families/classification_task_trace.h"

#include <optional>

#include "memory/ops/loss_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

class ClassificationTrace final : public TaskTrace {
 public:
  ClassificationTrace(TracedDevice& device, const ClassifierShape& shape)
      : device_(device), shape_(shape), model_(device, shape) {
    if (shape.weighs_classes && !regression()) {
      device.tracer().Keep(device.Allocate(kFloatBytes * shape.num_labels));
    }
  }

  const TracedParameterGroups& groups() const override { return model_.groups(); }
  const BackboneTrace& backbone() const override { return model_.backbone(); }

  TracedBatch BatchOf(const BatchShape& part) override {
    const bool matrix = shape_.multi_label || regression();
    const int64_t labels = matrix ? kFloatBytes * shape_.num_labels : kIndexBytes;
    return BatchOnDevice(device_.tracer(), part, labels * part.rows);
  }

  TracedTensor SumOfLosses(const TracedBatch& batch) override {
    const TracedTensor logits = model_.Forward(batch, /*training=*/true);
    if (regression()) return ops::Scale(device_, ops::SquaredError(device_, logits));
    const ops::LossOptions options{.weighted = shape_.weighs_classes,
                                   .smoothed = shape_.smooths_labels};
    return SumOfRowLosses(logits, batch.shape, options);
  }

  void Evaluate(const BatchShape& shape) override {
    const TracedBatch batch = BatchOf(shape);
    const TracedTensor logits = model_.Forward(batch, /*training=*/false);
    if (regression()) return;
    SumOfRowLosses(logits, shape, {});
    shape_.multi_label ? FindPositive(logits) : device_.Touch(kIndexBytes * shape.rows);
  }

 private:
  bool regression() const { return shape_.task == TaskKind::kTextRegression; }

  TracedTensor SumOfRowLosses(const TracedTensor& logits, const BatchShape& batch,
                              const ops::LossOptions& options) {
    if (!shape_.multi_label) {
      return ops::ClassLoss(device_, logits, batch.rows, shape_.num_labels, options);
    }
    std::optional<int64_t> weights;
    if (options.weighted) weights = shape_.num_labels;
    return ops::Scale(device_, ops::BinaryCrossEntropy(device_, logits, weights));
  }

  // Which logits are larger than a number; on a CPU it becomes an integer, then a float.
  void FindPositive(const TracedTensor& logits) {
    StepTracer& tracer = device_.tracer();
    TracedStorage number;
    TracedStorage converted;
    if (device_.traits().cpu) {
      number = tracer.Allocate(kIndexBytes, MemoryClass::kTemporary);
      converted = tracer.Allocate(kFloatBytes, MemoryClass::kTemporary);
    }
    const TracedStorage positive = tracer.Allocate(logits.elements, MemoryClass::kTemporary);
    number.Reset();
    converted.Reset();
  }

  TracedDevice& device_;
  const ClassifierShape& shape_;
  ClassifierTrace model_;
};

}  // namespace

std::unique_ptr<TaskTrace> MakeClassificationTrace(TracedDevice& device,
                                                   const ClassifierShape& shape) {
  return std::make_unique<ClassificationTrace>(device, shape);
}

}  // namespace hpo::memory
