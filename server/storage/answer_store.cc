// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/answer_store.h"

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/files/checksum.h"
#include "common/files/sha256.h"

namespace hpo::server {
namespace {

// Tells a repeated request from a reused id.
int64_t HashOf(absl::string_view text) { return static_cast<int64_t>(Fnv1a(text)); }

}  // namespace

absl::StatusOr<std::optional<std::string>> AnswerStore::Find(const std::string& request_id,
                                                             absl::string_view method,
                                                             absl::string_view body) const {
  if (request_id.empty()) return std::nullopt;
  Statement row = database_.Prepare(
      "SELECT method, body_hash, response FROM idempotency WHERE request_id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(Sha256Hex(request_id)).Next());
  if (!found) return std::nullopt;
  if (row.Text(0) != method || row.Int(1) != HashOf(body)) {
    return absl::AlreadyExistsError(absl::StrCat("request id ", request_id,
                                                 ": expected an unused id, got one of an earlier ",
                                                 row.Text(0), " with another body"));
  }
  return row.Text(2);
}

absl::Status AnswerStore::Record(const std::string& request_id, absl::string_view method,
                                 absl::string_view body, absl::string_view answer, absl::Time now) {
  if (request_id.empty()) return absl::OkStatus();
  return database_.Prepare("INSERT INTO idempotency VALUES (?1, ?2, ?3, ?4, ?5)")
      .Bind(Sha256Hex(request_id), method, HashOf(body), answer, now)
      .Run();
}

absl::Status AnswerStore::ForgetOld(absl::Time now) {
  return database_.Prepare("DELETE FROM idempotency WHERE time < ?1")
      .Bind(now - absl::Hours(24) * kRequestIdDays.most)
      .Run();
}

absl::Status AnswerStore::Forget(const std::string& request_id, absl::string_view method) {
  return database_.Prepare("DELETE FROM idempotency WHERE request_id = ?1 AND method = ?2")
      .Bind(Sha256Hex(request_id), method)
      .Run();
}

}  // namespace hpo::server
