// Attributes of one study and its trials in the database; kNoTrial stands for the study itself.
//
// Verbs over one connection: inside a WriteQueue's work they are part of its transaction; the const
// ones also run on a reader. Codes: database.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/study/trial.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

class AttributeStore {
 public:
  AttributeStore(Database& database, int64_t study_id) : database_(database), study_id_(study_id) {}

  // Makes `attributes` all that the trial has.
  absl::Status Replace(TrialNumber trial, const Attributes& attributes);
  absl::StatusOr<Attributes> Load(TrialNumber trial) const;
  // The trials that have the attribute `key`, with its value, by number.
  absl::StatusOr<std::map<TrialNumber, std::string>> Find(const std::string& key) const;

 private:
  Database& database_;
  const int64_t study_id_;
};

}  // namespace hpo::server
