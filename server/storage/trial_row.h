// The row of a trial: which columns it has, and how they are written and read.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/storage/records.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// "number, state, ...": what a SELECT names whose rows ReadTrialRow takes. The number comes first.
const std::string& TrialColumns();

// Without attempts and attributes. `study_id` and `study` are of the trial's study.
//   DataLoss  not what was written
absl::StatusOr<TrialRecord> ReadTrialRow(const Statement& row, int64_t study_id,
                                         const std::string& study);

//   AlreadyExists  the number or the origin is taken
absl::Status InsertTrialRow(Database& database, int64_t study_id, const TrialRecord& record);

// Writes what may change in the row of an open trial; of others, nothing (Database::NumChanged).
absl::Status UpdateTrialRow(Database& database, int64_t study_id, const TrialRecord& record);

}  // namespace hpo::server
