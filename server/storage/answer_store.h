// Answers to requests that carry an id, so that a request that is repeated changes nothing twice.
//
// Verbs over one connection: inside a WriteQueue's work they are part of its transaction; Find also
// runs on a reader. Request ids are stored as their hashes. Codes: database.h, and those named
// here.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

class AnswerStore {
 public:
  explicit AnswerStore(Database& database) : database_(database) {}

  // The recorded answer to `request_id`; nullopt for a new one and for an empty id.
  //   AlreadyExists  the id was used for another method or body
  absl::StatusOr<std::optional<std::string>> Find(const std::string& request_id,
                                                  absl::string_view method,
                                                  absl::string_view body) const;
  // Does nothing for an empty id.
  absl::Status Record(const std::string& request_id, absl::string_view method,
                      absl::string_view body, absl::string_view answer, absl::Time now);
  // Forgets request ids that are older than kRequestIdDays.
  absl::Status ForgetOld(absl::Time now);
  // Makes an id new again whose answer no longer holds (a lease that is gone).
  absl::Status Forget(const std::string& request_id, absl::string_view method);

 private:
  Database& database_;
};

}  // namespace hpo::server
