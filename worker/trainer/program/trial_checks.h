// What is decided about a trial before anything of it is on the device. Pure; free of torch.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/models/model_spec.h"
#include "common/protocol/trainer_protocol.h"
#include "memory/plan/memory_plan.h"
#include "worker/trainer/data/training_options.h"
#include "worker/trainer/data/trial_data.h"

namespace hpo::trainer {

// Whether the job is one of this trainer's, and has what its task needs.
//   InvalidArgument  not so; names the field or parameter, what was expected and what came
absl::Status CheckJob(const TrainerJob& job, const TrainingOptions& options);

// What a person should know of the data: those of reading them, labels without a row, names that
// no span is learnt of, rows that are longer than the model's positions.
std::vector<std::string> DataWarnings(const TrainerJob& job, const memory::TrainingConfig& config,
                                      const ModelShape& shape, const TextData& data);

// Whether the estimate may refuse the job: it asks for that, and there is a limit to go by.
bool IsAdmitted(const TrainerJob& job);

// Returns `plan` if its estimate is within the job's limit; else the plan of PlanMemory. Where that
// does not fit either, its estimate states the memory that it requires.
//   InvalidArgument  the model or its training cannot be estimated
absl::StatusOr<memory::PlannedMemory> FitTrial(const TrainerJob& job,
                                               const memory::EstimateInput& input,
                                               const MemoryPlan& plan);

// The outcome of a trial that does not fit.
OutOfMemory Refusal(const memory::PlannedMemory& planned, Bytes limit);

}  // namespace hpo::trainer
