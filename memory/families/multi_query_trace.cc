// Tested by tests/worker/trainer/memory_trace_tasks_test.cc.
#include "memory/families/multi_query_trace.h"

#include "common/models/query_answers.h"
#include "memory/ops/loss_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

class MultiQueryTrace final : public TaskTrace {
 public:
  MultiQueryTrace(TracedDevice& device, const ClassifierShape& shape)
      : device_(device),
        classes_(shape.num_labels - kAspectNumbers),
        with_spans_(shape.task == TaskKind::kMultiQuerySpans),
        training_loss_{.weighted = shape.weighs_classes, .smoothed = shape.smooths_labels},
        model_(device, shape) {
    if (shape.weighs_classes) device.tracer().Keep(device.Allocate(kFloatBytes * classes_));
  }

  const TracedParameterGroups& groups() const override { return model_.groups(); }
  const BackboneTrace& backbone() const override { return model_.backbone(); }

  TracedBatch BatchOf(const BatchShape& part) override {
    TracedBatch batch = BatchOnDevice(device_.tracer(), part, kIndexBytes * part.rows);
    StepTracer& tracer = device_.tracer();
    batch.numbers = tracer.Allocate(kFloatBytes * kAspectNumbers * part.rows);
    if (!with_spans_) return batch;
    batch.asks_class = tracer.Allocate(kFloatBytes * part.rows);
    batch.span_targets = tracer.Allocate(kFloatBytes * kSpanEnds * batch.Tokens());
    batch.span_weights = tracer.Allocate(kFloatBytes * batch.Tokens());
    return batch;
  }

  TracedTensor SumOfLosses(const TracedBatch& batch) override {
    return Loss(AnswersTo(batch, /*training=*/true), batch.shape.rows, training_loss_);
  }

  void Evaluate(const BatchShape& shape) override {
    const TracedBatch batch = BatchOf(shape);
    const Answers answers = AnswersTo(batch, /*training=*/false);
    Loss(answers, shape.rows, {});
    MeasureErrors(shape.rows);
    device_.Touch(kIndexBytes * shape.rows);
  }

 private:
  struct Answers {
    TracedTensor classes;
    TracedTensor numbers;
    TracedTensor spans;
  };

  Answers AnswersTo(const TracedBatch& batch, bool training) {
    ClassifierTrace::Outputs outputs = model_.ForwardWithSpans(batch, training);
    Answers answers = Answered(outputs.logits, batch.shape.rows);
    if (!with_spans_) return answers;
    TracedTensor asked = device_.NewTensor(answers.numbers.elements);
    asked.edge = device_.RecordLike(answers.numbers, {batch.asks_class});
    answers.numbers = asked;
    answers.spans = outputs.spans;
    return answers;
  }

  // Views; the gradient of each is one of all that it is a part of.
  Answers Answered(const TracedTensor& outputs, int64_t rows) {
    TracedTensor real = outputs;
    real.edge = device_.RecordLike(outputs);
    Answers answers{.classes = real, .numbers = real, .spans = {}};
    answers.classes.elements = rows * classes_;
    answers.classes.edge = device_.RecordLike(real);
    // A single row is contiguous as it is.
    answers.classes =
        ops::Relayout(device_, answers.classes, /*copies=*/rows > 1, /*copies_back=*/false);
    answers.numbers.elements = rows * kAspectNumbers;
    answers.numbers.edge = device_.RecordLike(real);
    return answers;
  }

  TracedTensor Loss(const Answers& answers, int64_t rows, const ops::LossOptions& options) {
    const TracedTensor of_classes =
        ops::ClassLoss(device_, answers.classes, rows, classes_, options);
    const TracedTensor of_numbers = ops::SquaredError(device_, answers.numbers);
    const TracedTensor of_aspects = ops::Add(device_, of_classes, ops::Scale(device_, of_numbers));
    if (!with_spans_) return of_aspects;
    return ops::Add(device_, of_aspects, ops::BinaryCrossEntropy(device_, answers.spans));
  }

  // In evaluation alone: far below the loss's own.
  void MeasureErrors(int64_t rows) {
    constexpr int64_t kDouble = 8;
    StepTracer& tracer = device_.tracer();
    TracedStorage sum;
    const TracedStorage difference =
        tracer.Allocate(kFloatBytes * kAspectNumbers * rows, MemoryClass::kTemporary);
    const TracedStorage squared =
        tracer.Allocate(kFloatBytes * kAspectNumbers * rows, MemoryClass::kTemporary);
    const TracedStorage exact =
        tracer.Allocate(kDouble * kAspectNumbers * rows, MemoryClass::kTemporary);
    sum = tracer.Allocate(kDouble * kAspectNumbers, MemoryClass::kTemporary);
    if (!device_.traits().cpu) sum.Reset();  // the host has it
  }

  TracedDevice& device_;
  int64_t classes_;
  bool with_spans_;
  ops::LossOptions training_loss_;
  ClassifierTrace model_;
};

}  // namespace

std::unique_ptr<TaskTrace> MakeMultiQueryTrace(TracedDevice& device, const ClassifierShape& shape) {
  return std::make_unique<MultiQueryTrace>(device, shape);
}

}  // namespace hpo::memory
