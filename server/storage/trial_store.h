// Trials of a study in the database.
//
// Verbs over one connection: inside a WriteQueue's work they are part of its transaction; the const
// ones also run on a reader. Codes: database.h, and those named here. The store itself guards what
// must never happen: a terminal trial stays as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/study_exchange.h"
#include "common/study/study.h"
#include "common/study/study_status.h"
#include "common/study/trial.h"
#include "server/storage/records.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

class TrialStore {
 public:
  // `study` names the trials' study in their ids.
  TrialStore(Database& database, int64_t study_id, std::string study)
      : database_(database), study_id_(study_id), study_(std::move(study)) {}

  // ---- Writing ----

  // Inserts under record.trial.id.number, which must be the study's next number.
  //   AlreadyExists  the number or the origin is taken
  absl::Status InsertTrial(const TrialRecord& record);
  // Writes everything but number, parameters, flags and `held`.
  //   FailedPrecondition  the stored trial is terminal already
  //   InvalidArgument     the row could not be read again
  absl::Status UpdateTrial(const TrialRecord& record);

  // How long workers have held an open trial; nothing for one that has ended.
  absl::Status SetHeld(TrialNumber trial, absl::Duration held);

  // ---- Reading ----
  //
  // A row that is not what a server writes is DataLoss, where nothing else is said.

  //   NotFound  no such trial
  absl::StatusOr<TrialRecord> LoadTrial(TrialNumber number) const;  // without attempts, attributes
  absl::StatusOr<TrialRecord> LoadTrialWithAttempts(TrialNumber number) const;
  // The same for people: of a trial whose rows cannot be read, one that says so (Unreadable).
  absl::StatusOr<Trial> LoadTrialToShow(TrialNumber number) const;
  // The trial that came from there, without attempts; nullopt: none did.
  absl::StatusOr<std::optional<TrialRecord>> FindByOrigin(const std::string& origin) const;
  struct LastEvent {
    TrialNumber trial;
    int64_t sequence = 0;
  };
  // Of every trial, in their order: what folds into a history.
  absl::StatusOr<std::vector<LastEvent>> LastEvents() const;

  // At most `limit` trials, without attempts, with their last measurement, that come after number
  // `after` in the filter's order (nullopt: from the start). One that cannot be read says so.
  absl::StatusOr<std::vector<Trial>> ListTrials(const TrialFilter& filter,
                                                std::optional<TrialNumber> after, int limit) const;
  absl::StatusOr<int64_t> CountTrials(const TrialFilter& filter) const;
  absl::StatusOr<TrialCounts> Count() const;
  // Completed trials that have a value, demonstrations left out, best first: feasible ones by their
  // value, then the others, the least violating first; none that cannot be read. limit < 0: all.
  absl::StatusOr<std::vector<Trial>> ListBest(Direction direction, int limit) const;

 private:
  // What a row does not hold.
  TrialRecord Blank() const;
  absl::StatusOr<Trial> ReadTrialToShow(const Statement& row) const;
  absl::StatusOr<std::optional<Measurement>> LoadLastMeasurement(const TrialRecord& record) const;

  Database& database_;
  const int64_t study_id_;
  const std::string study_;
};

// What is shown of a trial whose rows cannot be read: FAILED, with `why` as its message.
Trial UnreadableTrial(const TrialId& id, const absl::Status& why);

}  // namespace hpo::server
