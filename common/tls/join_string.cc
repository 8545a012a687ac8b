#include "common/tls/join_string.h"

#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::tls {
namespace {

constexpr char kPrefix[] = "hpo1.";
constexpr size_t kDigestLetters = 43;  // 32 bytes of base64url without padding
constexpr size_t kChecksumLetters = 4;
constexpr size_t kSecretLetters = kDigestLetters + kChecksumLetters;
constexpr char kForm[] = "hpo1.<43 characters>.<47 characters>@host:port";
constexpr char kAdvice[] = "; copy the whole line that hpo-server printed or that is in its file";

std::string Letters(absl::string_view bytes) {
  std::string text;
  absl::WebSafeBase64Escape(bytes, &text);
  return text;
}

absl::string_view Bytes(const std::array<uint8_t, 32>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string ChecksumOf(absl::string_view text) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return Letters({reinterpret_cast<const char*>(digest.data()), 3});
}

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the join string is damaged: expected ", kForm, ", got ", what, kAdvice));
}

absl::StatusOr<std::array<uint8_t, 32>> Decode(absl::string_view letters) {
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(letters, &bytes) || bytes.size() != 32) {
    return Damaged("a character that does not belong there");
  }
  std::array<uint8_t, 32> result{};
  std::copy(bytes.begin(), bytes.end(), result.begin());
  return result;
}

// What is left of `text` without a command before the join string and quotes around it.
absl::string_view WithoutCommand(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t space = text.find_last_of(" \t=");
  if (space != absl::string_view::npos) text = text.substr(space + 1);
  const auto is_quote = [](char c) { return c == '"' || c == '\''; };
  while (!text.empty() && is_quote(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_quote(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string JoinString::Address() const {
  if (absl::StrContains(host, ':')) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

Secret RandomSecret() {
  Secret secret;
  HPO_CHECK(RAND_bytes(secret.data(), static_cast<int>(secret.size())) == 1);
  return secret;
}

std::string FormatJoinString(const JoinString& join) {
  const std::string text =
      absl::StrCat(kPrefix, Letters(Bytes(join.certificate)), ".", Letters(Bytes(join.secret)));
  return absl::StrCat(text, ChecksumOf(text), "@", join.Address());
}

absl::StatusOr<JoinString> ParseJoinString(absl::string_view text) {
  text = WithoutCommand(text);
  if (text.empty()) return Damaged("nothing");
  if (!absl::StartsWith(text, kPrefix)) {
    return Damaged(absl::StartsWith(text, "hpo") && text.size() > 4 && text[4] == '.'
                       ? "one of another version of hpo"
                       : "a text that does not begin with hpo1.");
  }
  const size_t at = text.find('@');
  const absl::string_view words = text.substr(0, at);
  const size_t expected = sizeof(kPrefix) - 1 + kDigestLetters + 1 + kSecretLetters;
  if (words.size() != expected || at == absl::string_view::npos) {
    return Damaged(absl::StrCat(words.size(), " characters before the host in place of ", expected,
                                at == absl::string_view::npos ? ", and no @host:port" : ""));
  }
  const size_t begin = sizeof(kPrefix) - 1;
  const size_t checksum = words.size() - kChecksumLetters;
  if (words[begin + kDigestLetters] != '.') return Damaged("no dot between its two parts");
  JoinString join;
  HPO_ASSIGN_OR_RETURN(join.certificate, Decode(words.substr(begin, kDigestLetters)));
  HPO_ASSIGN_OR_RETURN(join.secret,
                       Decode(words.substr(begin + kDigestLetters + 1, kDigestLetters)));
  if (ChecksumOf(words.substr(0, checksum)) != words.substr(checksum)) {
    return Damaged("one whose checksum does not match, so a character was changed");
  }
  HPO_RETURN_IF_ERROR(ParseAddress(text.substr(at + 1), join));
  return join;
}

absl::Status ParseAddress(absl::string_view address, JoinString& join) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 1 || port > 65535) {
    return Damaged(absl::StrCat("the address '", address, "', which has no port from 1 to 65535"));
  }
  absl::string_view host = address.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty()) return Damaged("no host");
  join.host = std::string(host);
  join.port = port;
  return absl::OkStatus();
}

std::string FormatDigest(const Digest& digest) {
  std::string text = "sha256";
  for (const uint8_t byte : digest) absl::StrAppend(&text, ":", absl::Hex(byte, absl::kZeroPad2));
  return text;
}

}  // namespace hpo::tls
