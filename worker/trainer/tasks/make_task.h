// The task that a job names.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/task_kind.h"
#include "worker/trainer/tasks/task.h"
#include "worker/trainer/training/training_options.h"

namespace hpo {

// The task, with its model on parts.device, not yet initialised (models/weights.h).
//   InvalidArgument, Unimplemented  as MakeTextClassifier
// Throws c10::OutOfMemoryError when the parameters do not fit.
absl::StatusOr<std::unique_ptr<Task>> MakeTask(TaskKind kind, const ModelShape& shape,
                                               const TrainingOptions& options,
                                               const TaskParts& parts);

}  // namespace hpo
