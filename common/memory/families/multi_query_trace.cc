// worker/trainer/tasks/multi_query.cc, every query answered.
#include "common/memory/families/task_trace.h"
#include "common/models/query_answers.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;
constexpr int64_t kFloat = 4;

class MultiQueryTrace final : public TaskTrace {
 public:
  MultiQueryTrace(TraceOps& ops, const ClassifierShape& shape)
      : ops_(ops),
        classes_(shape.num_labels - kAspectNumbers),
        with_spans_(shape.task == TaskKind::kMultiQuerySpans),
        training_loss_{.weighted = shape.weighs_classes, .smoothed = shape.smooths_labels},
        model_(ops, shape) {
    if (shape.weighs_classes) ops.tracer().Keep(ops.tracer().Allocate(kFloat * classes_));
  }

  const TracedParameterGroups& groups() const override { return model_.groups(); }
  const BackboneTrace& backbone() const override { return model_.backbone(); }

  TracedBatch BatchOf(const BatchShape& part) override {
    TracedBatch batch = BatchOnDevice(ops_.tracer(), part, kIndex * part.rows);
    StepTracer& tracer = ops_.tracer();
    batch.numbers = tracer.Allocate(kFloat * kAspectNumbers * part.rows);
    if (!with_spans_) return batch;
    batch.asks_class = tracer.Allocate(kFloat * part.rows);
    batch.span_targets = tracer.Allocate(kFloat * kSpanEnds * batch.Tokens());
    batch.span_weights = tracer.Allocate(kFloat * batch.Tokens());
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
    ops_.tracer().Touch(kIndex * shape.rows);
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
    TracedTensor asked = ops_.tracer().NewTensor(answers.numbers.elements);
    asked.edge = ops_.tracer().RecordLike(answers.numbers, {batch.asks_class});
    answers.numbers = asked;
    answers.spans = outputs.spans;
    return answers;
  }

  // Views; the gradient of each is one of all that it is a part of.
  Answers Answered(const TracedTensor& outputs, int64_t rows) {
    TracedTensor real = outputs;
    real.edge = ops_.tracer().RecordLike(outputs);
    Answers answers{.classes = real, .numbers = real, .spans = {}};
    answers.classes.elements = rows * classes_;
    answers.classes.edge = ops_.tracer().RecordLike(real);
    // A single row is contiguous as it is.
    answers.classes = ops_.Relayout(answers.classes, /*copies=*/rows > 1, /*copies_back=*/false);
    answers.numbers.elements = rows * kAspectNumbers;
    answers.numbers.edge = ops_.tracer().RecordLike(real);
    return answers;
  }

  TracedTensor Loss(const Answers& answers, int64_t rows, const TraceOps::LossOptions& options) {
    const TracedTensor of_classes = ops_.ClassLoss(answers.classes, rows, classes_, options);
    const TracedTensor of_numbers = ops_.SquaredError(answers.numbers);
    const TracedTensor of_aspects = ops_.Add(of_classes, ops_.Scale(of_numbers));
    if (!with_spans_) return of_aspects;
    return ops_.Add(of_aspects, ops_.BinaryCrossEntropy(answers.spans));
  }

  // In evaluation alone: far below the loss's own.
  void MeasureErrors(int64_t rows) {
    constexpr int64_t kDouble = 8;
    StepTracer& tracer = ops_.tracer();
    TracedStorage sum;
    const TracedStorage difference =
        tracer.Allocate(kFloat * kAspectNumbers * rows, MemoryClass::kTemporary);
    const TracedStorage squared =
        tracer.Allocate(kFloat * kAspectNumbers * rows, MemoryClass::kTemporary);
    const TracedStorage exact =
        tracer.Allocate(kDouble * kAspectNumbers * rows, MemoryClass::kTemporary);
    sum = tracer.Allocate(kDouble * kAspectNumbers, MemoryClass::kTemporary);
    if (!ops_.traits().cpu) sum.Reset();  // the host has it
  }

  TraceOps& ops_;
  int64_t classes_;
  bool with_spans_;
  TraceOps::LossOptions training_loss_;
  ClassifierTrace model_;
};

}  // namespace

std::unique_ptr<TaskTrace> MakeMultiQueryTrace(TraceOps& ops, const ClassifierShape& shape) {
  return std::make_unique<MultiQueryTrace>(ops, shape);
}

}  // namespace hpo
