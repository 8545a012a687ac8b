#include "server/access/page_sessions.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "common/tls/identity.h"
#include "common/tls/join_string.h"

namespace hpo::server {
namespace {

constexpr int kOwnerOnly = 0600;
constexpr size_t kSecretLetters = 43;
constexpr size_t kSecretWithChecksum = 47;
constexpr char kVersion[] = "1";
constexpr char kAdvice[] =
    "; expected a join string such as hpo admin token create prints, or its second word";

absl::Status NotAdmitted(absl::string_view why) {
  return absl::UnauthenticatedError(absl::StrCat("token: ", why));
}

absl::StatusOr<tls::Secret> SecretOf(absl::string_view token) {
  token = absl::StripAsciiWhitespace(token);
  if (absl::StrContains(token, "hpo1.")) {
    const absl::StatusOr<tls::JoinString> join = tls::ParseJoinString(token);
    if (!join.ok()) return NotAdmitted(join.status().message());
    return join->secret;
  }
  std::string bytes;
  const bool is_secret = (token.size() == kSecretLetters || token.size() == kSecretWithChecksum) &&
                         absl::WebSafeBase64Unescape(token.substr(0, kSecretLetters), &bytes);
  tls::Secret secret{};
  if (!is_secret || bytes.size() != secret.size()) {
    return NotAdmitted(absl::StrCat("it has another form", kAdvice));
  }
  std::copy(bytes.begin(), bytes.end(), secret.begin());
  return secret;
}

absl::Status Verdict(const Admission& admission) {
  switch (admission.verdict) {
    case Admission::Verdict::kAdmitted:
      return absl::OkStatus();
    case Admission::Verdict::kRevoked:
      return NotAdmitted(absl::StrCat("'", admission.name, "' has been revoked"));
    case Admission::Verdict::kExpired:
      return NotAdmitted(absl::StrCat("'", admission.name, "' has expired or was replaced"));
    case Admission::Verdict::kUnknown:
      break;
  }
  return NotAdmitted("this server has no such token");
}

absl::Status WriteKey(const std::string& path, const tls::Secret& key) {
  DurableFile file(path, kOwnerOnly);
  HPO_RETURN_IF_ERROR(file.Create());
  const std::string text = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(key.data()), key.size()));
  HPO_RETURN_IF_ERROR(file.Write(text.data(), text.size()));
  return file.Commit();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageSessions>> PageSessions::Create(const std::string& folder,
                                                                   const TokenRegistry& tokens,
                                                                   const Clock& clock) {
  const std::string path = folder + "/page-key";
  Key key{};
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    key = tls::RandomSecret();
    HPO_RETURN_IF_ERROR(WriteKey(path, key));
  } else {
    HPO_RETURN_IF_ERROR(text.status());
    const std::string bytes = absl::HexStringToBytes(absl::StripAsciiWhitespace(*text));
    if (bytes.size() != key.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path,
                       ": expected 64 hexadecimal digits; remove the file, and a new one is "
                       "made"));
    }
    std::copy(bytes.begin(), bytes.end(), key.begin());
  }
  return std::unique_ptr<PageSessions>(new PageSessions(key, tokens, clock));
}

absl::StatusOr<Caller> PageSessions::OfToken(absl::string_view token) const {
  HPO_ASSIGN_OR_RETURN(const tls::Secret secret, SecretOf(token));
  HPO_ASSIGN_OR_RETURN(const tls::Identity identity, tls::DeriveClientIdentity(secret));
  const Admission admission = tokens_.Admit(tls::KeyDigest(identity.certificate.get()));
  HPO_RETURN_IF_ERROR(Verdict(admission));
  return Caller{.token = admission.token,
                .name = admission.name,
                .role = admission.role,
                .from = "",
                .expires = admission.expires};
}

std::string PageSessions::Signature(absl::string_view text) const {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &size);
  std::string letters;
  absl::WebSafeBase64Escape(absl::string_view(reinterpret_cast<const char*>(digest.data()), size),
                            &letters);
  return letters;
}

std::string PageSessions::CookieOf(const Caller& caller) const {
  const absl::Time until = std::min(clock_.Now() + kLife, caller.expires);
  const std::string text =
      absl::StrCat(kVersion, ".", caller.token, ".", absl::ToUnixSeconds(until));
  return absl::StrCat(text, ".", Signature(text));
}

absl::StatusOr<Caller> PageSessions::OfCookie(absl::string_view value) const {
  const size_t dot = value.rfind('.');
  const absl::string_view text = value.substr(0, dot == absl::string_view::npos ? 0 : dot);
  const std::string expected = Signature(text);
  const absl::string_view signature = value.substr(std::min(text.size() + 1, value.size()));
  const bool is_signed = signature.size() == expected.size() &&
                         CRYPTO_memcmp(signature.data(), expected.data(), expected.size()) == 0;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  int64_t token = 0;
  int64_t until = 0;
  const bool is_ours = is_signed && parts.size() == 3 && parts[0] == kVersion &&
                       absl::SimpleAtoi(parts[1], &token) && absl::SimpleAtoi(parts[2], &until);
  if (!is_ours) return absl::UnauthenticatedError("the session is not one of this server");
  if (absl::FromUnixSeconds(until) <= clock_.Now()) {
    return absl::UnauthenticatedError("the session has ended");
  }
  const Admission admission = tokens_.AdmissionOf(token);
  HPO_RETURN_IF_ERROR(Verdict(admission));
  return Caller{.token = admission.token,
                .name = admission.name,
                .role = admission.role,
                .from = "",
                .expires = admission.expires};
}

std::optional<std::string> CookieNamed(absl::string_view header, absl::string_view name) {
  for (const absl::string_view one : absl::StrSplit(header, ';')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(absl::StripAsciiWhitespace(one), absl::MaxSplits('=', 1));
    if (pair.first == name) return std::string(pair.second);
  }
  return std::nullopt;
}

}  // namespace hpo::server
