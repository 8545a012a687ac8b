// Trials that another program ran to their end.
#pragma once

#include "absl/status/statusor.h"
#include "common/study/imported_trial.h"
#include "server/studies/scheduler_state.h"

namespace hpo::server {

// Codes: StudyApi::ImportTrials. From any thread.
absl::StatusOr<ImportResult> ImportTrials(SchedulerState& state, const TrialImport& import);

}  // namespace hpo::server
