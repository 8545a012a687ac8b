#include "server/http/request_target.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hpo::server {
namespace {

constexpr char kHexDigits[] = "0123456789ABCDEF";

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// `plus`: '+' stands for a space, as in a form's query.
std::optional<std::string> Decoded(absl::string_view text, bool plus) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = DigitOf(text[i + 1]);
      const int low = DigitOf(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (plus && c == '+') {
      c = ' ';
    }
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) return std::nullopt;
    decoded.push_back(c);
  }
  return decoded;
}

bool StaysInside(absl::string_view path) {
  for (const absl::string_view segment : absl::StrSplit(path, absl::ByAnyChar("/\\"))) {
    if (segment == "." || segment == "..") return false;
  }
  return true;
}

}  // namespace

bool ReadTarget(absl::string_view target, RequestHead& head) {
  if (target.empty() || target.front() != '/') return false;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  const std::optional<std::string> path = Decoded(parts.first, /*plus=*/false);
  if (!path || !StaysInside(*path)) return false;
  head.raw_path = std::string(parts.first);
  head.path = *path;
  head.query.clear();
  for (const absl::string_view one : absl::StrSplit(parts.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(one, absl::MaxSplits('=', 1));
    std::optional<std::string> name = Decoded(pair.first, /*plus=*/true);
    std::optional<std::string> value = Decoded(pair.second, /*plus=*/true);
    if (!name || !value) return false;
    head.query.emplace_back(*std::move(name), *std::move(value));
  }
  return true;
}

std::string PercentEncoded(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      encoded.push_back(c);
    } else {
      encoded.push_back('%');
      encoded.push_back(kHexDigits[byte >> 4]);
      encoded.push_back(kHexDigits[byte & 15]);
    }
  }
  return encoded;
}

}  // namespace hpo::server
