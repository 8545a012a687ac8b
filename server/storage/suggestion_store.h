// Who proposed the trials of one study, in the database.
//
// Verbs over one connection: inside a WriteQueue's work they are part of its transaction; the const
// ones also run on a reader. Codes: database.h.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/storage/records.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

class SuggestionStore {
 public:
  SuggestionStore(Database& database, int64_t study_id)
      : database_(database), study_id_(study_id) {}

  absl::Status Insert(TrialNumber trial, const SuggestionRecord& suggestion);

  // Who proposed the trial, and why (Suggestion::sampler and reason): "random; an independent
  // draw".
  // "" where none was recorded.
  absl::StatusOr<std::string> LoadSampler(TrialNumber trial) const;
  // The same of the latest trial that was proposed, with its number: "trial #7: random; ...".
  absl::StatusOr<std::string> LoadLastSampler() const;

 private:
  Database& database_;
  const int64_t study_id_;
};

}  // namespace hpo::server
