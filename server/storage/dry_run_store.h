// What dry runs of one study's configurations found, in the database. Verbs over one connection, as
// in trial_store.h.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/storage/records.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// How long attempts of a study took.
struct TrialTimes {
  std::vector<absl::Duration> to_oom;     // that ended by an out-of-memory error of their GPU
  std::vector<absl::Duration> to_report;  // from a trial's start to its first measurement
};

class DryRunStore {
 public:
  DryRunStore(Database& database, int64_t study_id) : database_(database), study_id_(study_id) {}

  // Stores the rows of one dry run, by position, under the number that it returns.
  absl::StatusOr<int64_t> Insert(const std::vector<DryRunRecord>& rows);
  // By number and position.
  //   DataLoss  a row is not what a server writes
  absl::StatusOr<std::vector<DryRunRecord>> LoadAll() const;
  // What an out-of-memory error costs a GPU, as the study's trials show.
  absl::StatusOr<TrialTimes> LoadTimes() const;

 private:
  Database& database_;
  const int64_t study_id_;
};

}  // namespace hpo::server
