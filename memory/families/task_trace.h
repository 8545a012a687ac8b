// The tasks of our trainer as a StepTracer runs them: worker/trainer/tasks, statement by statement.
#pragma once

#include <memory>

#include "memory/families/backbone_trace.h"
#include "memory/families/classifier_shape.h"
#include "memory/families/classifier_trace.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

// Task of worker/trainer/tasks/task.h.
class TaskTrace {
 public:
  virtual ~TaskTrace() = default;

  virtual const TracedParameterGroups& groups() const = 0;
  virtual const BackboneTrace& backbone() const = 0;

  // A part's tensors, held by the caller until its backward is done.
  virtual TracedBatch BatchOf(const BatchShape& part) = 0;
  virtual TracedTensor SumOfLosses(const TracedBatch& batch) = 0;
  // One batch of the validation data. Nothing is recorded.
  virtual void Evaluate(const BatchShape& batch) = 0;
};

// Makes the parameters. Arguments outlive it; `shape` is as ClassifierTrace takes it, and of a
// decoder where its task is language modelling.
std::unique_ptr<TaskTrace> MakeTaskTrace(TracedDevice& device, const ClassifierShape& shape);

// The batch's tokens on the device, and `label_bytes` of labels.
TracedBatch BatchOnDevice(StepTracer& tracer, const BatchShape& shape, int64_t label_bytes);

}  // namespace hpo::memory
