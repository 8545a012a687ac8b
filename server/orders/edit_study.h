// A study's ranges are edited. The study is then read again from its rows, as at a start, so that
// what its sampler knows is what a restart would make of them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/orders/study_request.h"
#include "server/studies/scheduler_state.h"

namespace hpo::server {

// Codes: StudyApi::EditStudy. From any thread.
absl::StatusOr<EditResult> EditStudy(SchedulerState& state, const std::string& name,
                                     const StudyEdit& edit);

}  // namespace hpo::server
