#include "server/access/token_registry.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tls/identity.h"

namespace hpo::server {
namespace {

constexpr size_t kMostNameLetters = 64;

std::string HexOf(const tls::Digest& digest) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

absl::Status CheckName(const std::string& name) {
  const bool valid = !name.empty() && name.size() <= kMostNameLetters &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
                              c == '_' || c == '.';
                     });
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "name: expected 1 to ", kMostNameLetters, " letters, digits, '-', '_' or '.', got '",
      absl::CHexEscape(name.substr(0, kMostNameLetters)), "'"));
}

absl::Status NoSuchToken(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("no token '", absl::CHexEscape(name),
                                          "' is in use; hpo admin token list shows all"));
}

absl::Status StoreTimes(Database& database, const std::vector<TokenRecord>& rows) {
  for (const TokenRecord& row : rows) {
    HPO_RETURN_IF_ERROR(TokenStore(database).UpdateTimes(row));
  }
  return absl::OkStatus();
}

// Takes the newer state of those that `tokens` has.
void Replace(const std::vector<TokenRecord>& rows, std::vector<TokenRecord>& tokens) {
  for (TokenRecord& token : tokens) {
    for (const TokenRecord& row : rows) {
      if (token.id == row.id) token = row;
    }
  }
}

Admission AdmissionAt(const TokenRecord& token, absl::Time now) {
  Admission admission{.verdict = Admission::Verdict::kAdmitted,
                      .token = token.id,
                      .name = token.name,
                      .role = token.role,
                      .expires = token.expires};
  if (token.revoked <= now) {
    admission.verdict = Admission::Verdict::kRevoked;
  } else if (token.expires <= now) {
    admission.verdict = Admission::Verdict::kExpired;
  }
  return admission;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenRegistry>> TokenRegistry::Load(Store& store,
                                                                   const Clock& clock) {
  std::vector<TokenRecord> tokens;
  const auto load = [&tokens](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(tokens, TokenStore(database).LoadAll());
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store.Read(load));
  return std::unique_ptr<TokenRegistry>(new TokenRegistry(store, clock, std::move(tokens)));
}

Admission TokenRegistry::Admit(const tls::Digest& key) const {
  const std::string hex = HexOf(key);
  const absl::Time now = clock_.Now();
  Admission admission;
  absl::MutexLock lock(&mutex_);
  // All of them, so that the time tells nothing.
  for (const TokenRecord& token : tokens_) {
    const bool is_it = token.key_sha256.size() == hex.size() &&
                       CRYPTO_memcmp(token.key_sha256.data(), hex.data(), hex.size()) == 0;
    if (is_it) admission = AdmissionAt(token, now);
  }
  return admission;
}

Admission TokenRegistry::AdmissionOf(int64_t token) const {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  for (const TokenRecord& one : tokens_) {
    if (one.id == token) return AdmissionAt(one, now);
  }
  return {};
}

bool TokenRegistry::IsValid(int64_t token) const {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  return std::any_of(tokens_.begin(), tokens_.end(), [token, now](const TokenRecord& one) {
    return one.id == token && one.revoked > now && one.expires > now;
  });
}

bool TokenRegistry::empty() const {
  absl::MutexLock lock(&mutex_);
  return tokens_.empty();
}

std::vector<TokenInfo> TokenRegistry::List() const {
  // The last row of a name is its current secret; a name may be used again after it was revoked.
  std::vector<TokenInfo> listed;
  absl::MutexLock lock(&mutex_);
  for (const TokenRecord& token : tokens_) {
    TokenInfo info{.name = token.name,
                   .role = token.role,
                   .created = token.created,
                   .expires = token.expires,
                   .revoked = token.revoked};
    const auto known = std::find_if(listed.begin(), listed.end(), [&token](const TokenInfo& one) {
      return one.name == token.name && one.revoked == absl::InfiniteFuture();
    });
    if (known == listed.end()) {
      listed.push_back(std::move(info));
      continue;
    }
    info.previous_until = known->expires;
    info.created = known->created;
    *known = std::move(info);
  }
  return listed;
}

std::vector<TokenRecord> TokenRegistry::InUse(absl::string_view name) const {
  const absl::Time now = clock_.Now();
  std::vector<TokenRecord> rows;
  absl::MutexLock lock(&mutex_);
  for (const TokenRecord& token : tokens_) {
    if (token.name == name && token.revoked > now) rows.push_back(token);
  }
  return rows;
}

absl::StatusOr<tls::Secret> TokenRegistry::Create(const std::string& name, Role role,
                                                  absl::Time expires) {
  HPO_RETURN_IF_ERROR(CheckName(name));
  absl::MutexLock order(&order_mutex_);
  if (!InUse(name).empty()) {
    return absl::AlreadyExistsError(
        absl::StrCat("a token '", name, "' is in use; for a new secret: hpo admin token rotate ",
                     name, "; to remove it: hpo admin token revoke ", name));
  }
  return Insert(name, role, expires);
}

absl::StatusOr<tls::Secret> TokenRegistry::Rotate(
    const std::string& name, absl::Duration grace, std::optional<absl::Time> expires,
    const std::function<absl::Status(const tls::Secret&)>& publish) {
  absl::MutexLock order(&order_mutex_);
  std::vector<TokenRecord> rows = InUse(name);
  if (rows.empty()) return NoSuchToken(name);
  const TokenRecord last = rows.back();
  HPO_ASSIGN_OR_RETURN(const tls::Secret secret,
                       Insert(name, last.role, expires.value_or(last.expires)));
  if (publish) HPO_RETURN_IF_ERROR(publish(secret));
  for (TokenRecord& row : rows) row.expires = std::min(row.expires, clock_.Now() + grace);
  HPO_RETURN_IF_ERROR(Update(rows));
  return secret;
}

bool TokenRegistry::IsLastOf(Role role, absl::string_view name) const {
  const absl::Time now = clock_.Now();
  bool is_there = false;
  absl::MutexLock lock(&mutex_);
  for (const TokenRecord& token : tokens_) {
    const bool is_in_use = token.revoked > now && token.expires > now;
    if (token.role != role || !is_in_use) continue;
    if (token.name != name) return false;
    is_there = true;
  }
  return is_there;
}

absl::Status TokenRegistry::Revoke(const std::string& name) {
  absl::MutexLock order(&order_mutex_);
  std::vector<TokenRecord> rows = InUse(name);
  if (rows.empty()) return NoSuchToken(name);
  if (IsLastOf(Role::kAdmin, name)) {
    return absl::FailedPreconditionError(absl::StrCat(
        name,
        " is the last token of the role admin: create another one first (hpo admin token "
        "create NAME --role admin), or give it a new secret (hpo admin token rotate ",
        name, " --grace 0s)"));
  }
  const absl::Time now = clock_.Now();
  for (TokenRecord& row : rows) row.revoked = now;
  return Update(rows);
}

absl::Status TokenRegistry::Update(const std::vector<TokenRecord>& rows) {
  const auto store = [&rows](Database& database) { return StoreTimes(database, rows); };
  HPO_RETURN_IF_ERROR(store_.Write(store));
  absl::MutexLock lock(&mutex_);
  Replace(rows, tokens_);
  return absl::OkStatus();
}

absl::StatusOr<tls::Secret> TokenRegistry::Insert(const std::string& name, Role role,
                                                  absl::Time expires) {
  const tls::Secret secret = tls::RandomSecret();
  HPO_ASSIGN_OR_RETURN(const tls::Identity identity, tls::DeriveClientIdentity(secret));
  TokenRecord token{.name = name,
                    .role = role,
                    .key_sha256 = HexOf(tls::KeyDigest(identity.certificate.get())),
                    .created = clock_.Now(),
                    .expires = expires};
  const auto store = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(token.id, TokenStore(database).Insert(token));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store_.Write(store));
  absl::MutexLock lock(&mutex_);
  tokens_.push_back(std::move(token));
  return secret;
}

}  // namespace hpo::server
