// Whether a study waits for something that does not come by itself.
#pragma once

#include <cstdint>

#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"
#include "server/trials/open_trials.h"

namespace hpo::server {

// Whether a queued trial ends as its out-of-memory error said once it has waited long enough for a
// larger card: of the live workers that can run it, none may use more than it had.
bool EndsByWaiting(const SchedulerState& state, const StudySpec& spec, const QueuedTrial& queued);

// Whether nothing of the study runs or will run unless somebody intervenes: no worker holds a
// trial, no queued one ends by waiting, and each live worker that may serve the study asked at
// `generation` of the work signal and is blocked (WorkerObstacle). False where no worker lives,
// where one says that its machine keeps it from trials for now, and where the study is paused.
bool IsBlocked(const SchedulerState& state, const StudyRuntime& study, int64_t generation);

}  // namespace hpo::server
