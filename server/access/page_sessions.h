// Who a browser or curl is, where the page is served by TLS: a token in Authorization, or a cookie
// that stands for one. The cookie is signed: it holds no secret, and outlives the server.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/access/access_control.h"
#include "server/access/token_registry.h"

namespace hpo::server {

// Thread-safe.
class PageSessions {
 public:
  static constexpr absl::Duration kLife = absl::Hours(24 * 30);

  // Signs with the key in `folder`/page-key (mode 0600), which is made where there is none.
  // `tokens` and `clock` outlive it.
  static absl::StatusOr<std::unique_ptr<PageSessions>> Create(const std::string& folder,
                                                              const TokenRegistry& tokens,
                                                              const Clock& clock);

  // `token`: a join string, a command with one, or its second word (the secret, 47 or 43
  // characters). The caller has no address yet.
  //   Unauthenticated  it is none, is not known here, was revoked or has expired; says which
  absl::StatusOr<Caller> OfToken(absl::string_view token) const;

  // A cookie's value for the caller of a token.
  std::string CookieOf(const Caller& caller) const;
  //   Unauthenticated  not one of this server's, too old, or of a token that no longer works
  absl::StatusOr<Caller> OfCookie(absl::string_view value) const;

 private:
  using Key = std::array<uint8_t, 32>;

  PageSessions(const Key& key, const TokenRegistry& tokens, const Clock& clock)
      : key_(key), tokens_(tokens), clock_(clock) {}

  std::string Signature(absl::string_view text) const;

  const Key key_;
  const TokenRegistry& tokens_;
  const Clock& clock_;
};

// The value of a cookie in a Cookie header (RFC 6265); nullopt: it is not there.
std::optional<std::string> CookieNamed(absl::string_view header, absl::string_view name);

}  // namespace hpo::server
