// Memory from rows: at the start, where a commit's fate was unknown, and of a study that has
// changed in more than its budget.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/placement/live_calibration.h"
#include "server/storage/sqlite/database.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Codes: database.h. Trials whose rows cannot be read are quarantined.

absl::StatusOr<CalibrationSnapshot> LoadCalibration(Database& database);

// Makes memory equal to the rows. Studies that were there before are retired; those whose rows
// cannot be read are left out, logged, and named by the registry.
absl::Status LoadStudies(SchedulerState& state, Database& database);

// The study as its rows are; what it starts from is `priors`. Not yet in the registry.
//   DataLoss  its row cannot be read
absl::StatusOr<std::unique_ptr<StudyRuntime>> ReloadStudy(SchedulerState& state, Database& database,
                                                          int64_t study_id,
                                                          std::vector<sampler::PriorStudy> priors);

// One write after which nothing more is written by `study`: another takes its place, or none.
// `publish` runs after the commit. Where it is not committed the study goes on.
//   Unavailable  retired before; further codes: Store::Write
absl::Status WriteAndRetire(SchedulerState& state, StudyRuntime& study,
                            const std::function<absl::Status(Database&)>& work,
                            const std::function<void()>& publish);

}  // namespace hpo::server
