// Attempts of a study's trials in the database, with what they measured. Verbs over one connection,
// as in trial_store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/study/trial.h"
#include "server/storage/records.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// A row that is not what a server writes is DataLoss, where nothing else is said.
class AttemptStore {
 public:
  // `study` names the trials' study in messages.
  AttemptStore(Database& database, int64_t study_id, std::string study)
      : database_(database), study_id_(study_id), study_(std::move(study)) {}

  absl::Status InsertAttempt(const AttemptRecord& record);
  //   InvalidArgument  the row could not be read again
  absl::Status UpdateAttempt(const AttemptRecord& record);
  //   NotFound  no such attempt
  absl::StatusOr<AttemptRecord> LoadAttempt(TrialNumber trial, AttemptNumber attempt) const;
  absl::StatusOr<std::vector<AttemptRecord>> LoadAttempts(TrialNumber trial) const;
  // The time of attempts that have ended, by how they ended; without trials that another program
  // ran.
  struct EndedTime {
    std::string state;
    std::string outcome;  // its kind, as stored: "completed"; empty: none
    absl::Duration duration;
  };
  absl::StatusOr<std::vector<EndedTime>> SumEnded() const;
  // Of every attempt that holds a lease.
  absl::StatusOr<std::vector<AttemptRecord>> LoadLeases() const;

  // Keeps what is there: a re-sent (attempt, step) only adds the metrics that it lacks. Returns the
  // new ones, and those that have more metrics now, with all of them.
  absl::StatusOr<std::vector<Measurement>> InsertMeasurements(
      TrialNumber trial, AttemptNumber attempt, std::vector<Measurement> measurements);
  // By step.
  absl::StatusOr<std::vector<Measurement>> LoadMeasurements(TrialNumber trial,
                                                            AttemptNumber attempt) const;
  // nullopt: there is none.
  absl::StatusOr<std::optional<Measurement>> LoadLastMeasurement(TrialNumber trial,
                                                                 AttemptNumber attempt) const;
  absl::StatusOr<int64_t> CountMeasurements(TrialNumber trial, AttemptNumber attempt) const;

  // Keeps what is there: a re-sent (attempt, sequence) is ignored.
  absl::Status InsertMemoryRecords(TrialNumber trial, AttemptNumber attempt,
                                   const std::vector<MemoryRecord>& records);
  // By sequence.
  absl::StatusOr<std::vector<MemoryRecord>> LoadMemoryRecords(TrialNumber trial,
                                                              AttemptNumber attempt) const;

  // Attempt::log_tail. What was stored before is replaced.
  absl::Status StoreLogTail(TrialNumber trial, AttemptNumber attempt, const std::string& tail);
  // Empty: there is none.
  absl::StatusOr<std::string> LoadLogTail(TrialNumber trial, AttemptNumber attempt) const;

 private:
  // Gives the stored measurement of the same step the metrics that it lacks, and `measurement` all
  // of them; false: it lacks none, or would have more than one may have.
  absl::StatusOr<bool> AddMetrics(TrialNumber trial, AttemptNumber attempt,
                                  Measurement& measurement);

  Database& database_;
  const int64_t study_id_;
  const std::string study_;
};

}  // namespace hpo::server
