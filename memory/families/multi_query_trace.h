// worker/trainer/tasks/multi_query.cc, every query answered. See task_trace.h.
#pragma once

#include <memory>

#include "memory/families/task_trace.h"

namespace hpo::memory {

std::unique_ptr<TaskTrace> MakeMultiQueryTrace(TracedDevice& device, const ClassifierShape& shape);

}  // namespace hpo::memory
