// What those who wait for the trials that workers hold are told of them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Of each trial of the study whose worker has missed two beats, or whose connection has closed:
// "trial #3: its worker w has not been heard of for 21 s; the trial is queued again in 99 s". Times
// are rounded down to a multiple of `step`.
std::vector<std::string> SilentTrials(const SchedulerState& state, const StudyRuntime& study,
                                      absl::Duration step = absl::Seconds(1));

// Why `asker`, a worker's name, gets nothing of a study whose whole budget is handed out or that
// ends (WhyEnding): which of its trials run, and where; those that are silent as above. Of many the
// first few.
std::string DescribeHeld(const SchedulerState& state, const StudyRuntime& study,
                         const std::string& asker);

// An obstacle of one study, for those who serve several.
std::string OfStudy(const std::string& study, absl::string_view obstacle);

// Why the drained worker of this name gets no trial.
std::string WhyDrained(const std::string& worker);

}  // namespace hpo::server
