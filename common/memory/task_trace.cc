#include "common/memory/task_trace.h"

namespace hpo {

TracedBatch BatchOnDevice(StepTracer& tracer, const BatchShape& shape, int64_t label_bytes) {
  constexpr int64_t kIndex = 8;
  const int64_t positions = kIndex * shape.rows * shape.tokens;
  TracedBatch batch{.shape = shape};
  batch.ids = tracer.Allocate(positions);
  batch.mask = tracer.Allocate(positions);
  batch.types = tracer.Allocate(positions);
  batch.labels = tracer.Allocate(label_bytes);
  return batch;
}

std::unique_ptr<TaskTrace> MakeTaskTrace(TraceOps& ops, const ClassifierShape& shape) {
  switch (shape.task) {
    case TaskKind::kTextClassification:
    case TaskKind::kTextRegression:
      return MakeClassificationTrace(ops, shape);
    case TaskKind::kMultiQuery:
      return MakeMultiQueryTrace(ops, shape);
    case TaskKind::kLanguageModeling:
      break;
  }
  return MakeLanguageTrace(ops, shape);
}

}  // namespace hpo
