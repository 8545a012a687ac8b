#include "memory/families/task_trace.h"

#include "memory/families/classification_task_trace.h"
#include "memory/families/language_task_trace.h"
#include "memory/families/multi_query_trace.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

TracedBatch BatchOnDevice(StepTracer& tracer, const BatchShape& shape, int64_t label_bytes) {
  constexpr int64_t kOffset = 4;
  TracedBatch batch{.shape = shape};
  const int64_t bytes = kIndexBytes * batch.Tokens();
  batch.ids = tracer.Allocate(bytes);
  if (batch.IsPacked()) {
    batch.positions = tracer.Allocate(bytes);
    batch.offsets = tracer.Allocate(kOffset * (shape.rows + 1));
  } else {
    batch.mask = tracer.Allocate(bytes);
  }
  batch.types = tracer.Allocate(bytes);
  batch.labels = tracer.Allocate(label_bytes);
  return batch;
}

std::unique_ptr<TaskTrace> MakeTaskTrace(TracedDevice& device, const ClassifierShape& shape) {
  switch (shape.task) {
    case TaskKind::kTextClassification:
    case TaskKind::kTextRegression:
      return MakeClassificationTrace(device, shape);
    case TaskKind::kMultiQuery:
    case TaskKind::kMultiQuerySpans:
      return MakeMultiQueryTrace(device, shape);
    case TaskKind::kLanguageModeling:
      break;
  }
  return MakeLanguageTrace(device, shape);
}

}  // namespace hpo::memory
