// The task of a job.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/models/model_spec.h"
#include "worker/trainer/data/training_options.h"
#include "worker/trainer/models/files/model_folder.h"
#include "worker/trainer/tasks/task.h"

namespace hpo::trainer {

// The task of parts.data, with its model on parts.device, not yet initialised (models/weights.h).
//   InvalidArgument, Unimplemented  as MakeTextClassifier, MakeLanguageModel, ClassWeights
// Throws c10::OutOfMemoryError when the parameters do not fit.
absl::StatusOr<std::unique_ptr<Task>> MakeTask(const ModelShape& shape,
                                               const TrainingOptions& options,
                                               const TaskParts& parts);

// What its trained model's config.json says.
ModelRole RoleOf(const TextData& data);

}  // namespace hpo::trainer
