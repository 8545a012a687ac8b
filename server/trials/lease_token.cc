#include "server/trials/lease_token.h"

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"

namespace hpo::server {
namespace {

constexpr size_t kTokenDigits = 32;  // 128 bits

}  // namespace

std::string MakeLeaseToken(const std::string& secret, const std::string& request_id,
                           const TrialId& trial, AttemptNumber attempt) {
  if (request_id.empty()) return RandomId();
  return Sha256Hex(absl::StrCat(secret, "\n", request_id, "\n", trial.study, "\n",
                                trial.number.value, "\n", attempt.value))
      .substr(0, kTokenDigits);
}

std::string HashOfToken(const std::string& token) { return Sha256Hex(token); }

}  // namespace hpo::server
