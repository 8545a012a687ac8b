// worker/trainer/tasks/multi_query.cc, every query answered.
#include "common/memory/task_trace.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;
constexpr int64_t kFloat = 4;
constexpr int64_t kNumbers = 2;

class MultiQueryTrace final : public TaskTrace {
 public:
  MultiQueryTrace(TraceOps& ops, const ClassifierShape& shape)
      : ops_(ops), classes_(shape.num_labels - kNumbers), model_(ops, shape) {}

  const TracedParameterGroups& groups() const override { return model_.groups(); }
  const BackboneTrace& backbone() const override { return model_.backbone(); }

  TracedBatch BatchOf(const BatchShape& part) override {
    TracedBatch batch = BatchOnDevice(ops_.tracer(), part, kIndex * part.rows);
    batch.numbers = ops_.tracer().Allocate(kFloat * kNumbers * part.rows);
    return batch;
  }

  TracedTensor SumOfLosses(const TracedBatch& batch) override {
    const TracedTensor outputs = model_.Forward(batch, /*training=*/true);
    return Loss(Answered(outputs, batch.shape.rows), batch.shape.rows);
  }

  void Evaluate(const BatchShape& shape) override {
    const TracedBatch batch = BatchOf(shape);
    const Answers answers = Answered(model_.Forward(batch, /*training=*/false), shape.rows);
    Loss(answers, shape.rows);
    MeasureErrors(shape.rows);
    ops_.tracer().Touch(kIndex * shape.rows);
  }

 private:
  struct Answers {
    TracedTensor classes;
    TracedTensor numbers;
  };

  // Views; the gradient of each is one of all that it is a part of.
  Answers Answered(const TracedTensor& outputs, int64_t rows) {
    TracedTensor real = outputs;
    real.edge = ops_.tracer().RecordLike(outputs);
    Answers answers{.classes = real, .numbers = real};
    answers.classes.elements = rows * classes_;
    answers.classes.edge = ops_.tracer().RecordLike(real);
    // A single row is contiguous as it is.
    answers.classes = ops_.Relayout(answers.classes, /*copies=*/rows > 1, /*copies_back=*/false);
    answers.numbers.elements = rows * kNumbers;
    answers.numbers.edge = ops_.tracer().RecordLike(real);
    return answers;
  }

  TracedTensor Loss(const Answers& answers, int64_t rows) {
    const TracedTensor of_classes = ops_.CrossEntropy(answers.classes, rows, classes_);
    const TracedTensor of_numbers = ops_.SquaredError(answers.numbers);
    return ops_.Add(of_classes, ops_.Scale(of_numbers));
  }

  // In evaluation alone: far below the loss's own.
  void MeasureErrors(int64_t rows) {
    constexpr int64_t kDouble = 8;
    StepTracer& tracer = ops_.tracer();
    TracedStorage sum;
    const TracedStorage difference =
        tracer.Allocate(kFloat * kNumbers * rows, MemoryClass::kTemporary);
    const TracedStorage squared =
        tracer.Allocate(kFloat * kNumbers * rows, MemoryClass::kTemporary);
    const TracedStorage exact = tracer.Allocate(kDouble * kNumbers * rows, MemoryClass::kTemporary);
    sum = tracer.Allocate(kDouble * kNumbers, MemoryClass::kTemporary);
  }

  TraceOps& ops_;
  int64_t classes_;
  ClassifierTrace model_;
};

}  // namespace

std::unique_ptr<TaskTrace> MakeMultiQueryTrace(TraceOps& ops, const ClassifierShape& shape) {
  return std::make_unique<MultiQueryTrace>(ops, shape);
}

}  // namespace hpo
