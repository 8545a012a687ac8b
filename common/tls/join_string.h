// A join string: everything that a program on another machine needs to reach a server, in one word:
//
//   hpo1.<certificate>.<secret>@host:port
//
// <certificate>: SHA-256 of the certificate (DER) that the server's chain must begin or end with,
// 43 characters of base64url. <secret>: 32 random bytes, 43 characters, then four characters of
// checksum over everything before, so that a damaged string differs from one of another server.
// The client derives a key pair from the secret (identity.h); the secret itself is never sent.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::tls {

// SHA-256 of a certificate or of a public key.
using Digest = std::array<uint8_t, 32>;
// 32 random bytes.
using Secret = std::array<uint8_t, 32>;

struct JoinString {
  Digest certificate{};
  Secret secret{};
  std::string host;  // a name, an IPv4 address, or an IPv6 address without brackets
  int port = 0;
  bool operator==(const JoinString&) const = default;

  // "host:port", with brackets around an IPv6 address.
  std::string Address() const;
};

// From the system's generator of random numbers.
Secret RandomSecret();

std::string FormatJoinString(const JoinString& join);

// Reads a join string; spaces and line ends around it are ignored, and so is a command before it
// (`hpo-worker --join hpo1...`), since that is what the server prints and people paste.
//   InvalidArgument  cut short, damaged or of a later version; names neither secret nor digest
absl::StatusOr<JoinString> ParseJoinString(absl::string_view text);

// Sets host and port from "host:port" or "[::1]:port".
//   InvalidArgument  with what came
absl::Status ParseAddress(absl::string_view address, JoinString& join);

// The digest in groups for people to compare: "sha256:1f:0a:...".
std::string FormatDigest(const Digest& digest);

}  // namespace hpo::tls
