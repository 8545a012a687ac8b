// The changes of a study, in their order. Verbs over one connection, as in trial_store.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/storage/records.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

class EventLog {
 public:
  EventLog(Database& database, int64_t study_id) : database_(database), study_id_(study_id) {}

  struct Event {
    int64_t sequence = 0;
    std::string kind;
    TrialNumber trial;  // kNoTrial: of the study
  };
  // Returns the event's sequence within the study. kNoTrial: the event is the study's own.
  absl::StatusOr<int64_t> Append(TrialNumber trial, absl::string_view kind, absl::Time now);
  absl::StatusOr<std::vector<Event>> After(int64_t sequence, int limit) const;
  // Forgets events up to and with `last`.
  absl::Status Forget(int64_t last);

 private:
  absl::StatusOr<int64_t> LastSequence() const;

  Database& database_;
  const int64_t study_id_;
};

}  // namespace hpo::server
