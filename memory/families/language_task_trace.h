// worker/trainer/tasks/language_modeling.cc, with models/language_model.cc and
// training/chunked_loss.cc. See task_trace.h.
#pragma once

#include <memory>

#include "memory/families/task_trace.h"

namespace hpo::memory {

std::unique_ptr<TaskTrace> MakeLanguageTrace(TracedDevice& device, const ClassifierShape& shape);

}  // namespace hpo::memory
