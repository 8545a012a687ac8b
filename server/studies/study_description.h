// What people are told of a study.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/study/study_status.h"
#include "server/studies/scheduler_state.h"

namespace hpo::server {

// The study as it is now. Of one whose row cannot be read, its name and why.
//   NotFound  StudyRegistry::Find
//   DataLoss, Unavailable  database.h
absl::StatusOr<StudyStatus> DescribeStudy(const SchedulerState& state, const std::string& name);

}  // namespace hpo::server
