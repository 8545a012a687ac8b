// worker/trainer/tasks/text_classification.cc and text_regression.cc. See task_trace.h.
#pragma once

#include <memory>

#include "memory/families/task_trace.h"

namespace hpo::memory {

std::unique_ptr<TaskTrace> MakeClassificationTrace(TracedDevice& device,
                                                   const ClassifierShape& shape);

}  // namespace hpo::memory
