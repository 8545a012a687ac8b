// What a value on a command line may be. CLI11's own checks of numbers print bounds such as the
// largest double with all its 309 digits.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/spelling.h"

namespace hpo {

namespace bounds_internal {

// What is wrong with a whole number: one that `Integer` does not hold CLI11 takes for the largest
// that it does, and one with a leading zero for octal. Empty: nothing.
template <typename Integer>
std::string WrongInteger(const std::string& text) {
  Integer whole = 0;
  const size_t sign = text.empty() || (text[0] != '-' && text[0] != '+') ? 0 : 1;
  const bool is_whole =
      text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
  if (!is_whole) return "";
  if (text[sign] == '0' && text.size() > sign + 1) {
    return absl::StrCat("expected a number without a leading zero, got '", text, "'");
  }
  if (absl::SimpleAtoi(text, &whole)) return "";
  return absl::StrCat("expected a whole number from ", std::numeric_limits<Integer>::min(), " to ",
                      std::numeric_limits<Integer>::max(), ", got '", text, "'");
}

inline CLI::Validator Check(double low, double high, const std::string& expected) {
  const auto check = [=](const std::string& text) -> std::string {
    if (std::string wrong = WrongInteger<int64_t>(text); !wrong.empty()) return wrong;
    double number = 0.0;
    if (absl::SimpleAtod(text, &number) && number >= low && number <= high) return "";
    return absl::StrCat("expected ", expected, ", got '", text, "'");
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

}  // namespace bounds_internal

// Of an option that takes a uint64_t and says so by a type name of its own.
inline CLI::Validator Unsigned64() {
  return CLI::Validator(bounds_internal::WrongInteger<uint64_t>, /*validator_desc=*/"");
}

inline CLI::Validator AtLeast(double low) {
  return bounds_internal::Check(low, 1e300, absl::StrCat("a number of at least ", low));
}

inline CLI::Validator Between(double low, double high) {
  return bounds_internal::Check(low, high, absl::StrCat("a number from ", low, " to ", high));
}

// `what`: "the name of a study". An empty word is mostly a shell's variable that is not set.
inline CLI::Validator NotEmpty(const std::string& what) {
  const auto check = [what](const std::string& text) -> std::string {
    return text.empty() ? absl::StrCat("expected ", what, ", got an empty text") : "";
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

// One of several words, which the help and the shells' completion show as well.
inline CLI::Validator OneOf(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    return absl::StrCat("expected one of ", absl::StrJoin(words, ", "), ", got '", text, "'",
                        DidYouMean(text, words));
  };
  return CLI::Validator(check, absl::StrCat("{", absl::StrJoin(words, ","), "}"));
}

// The address of an hpo-server, as WithDefaultPort (server_address.h) takes it.
inline CLI::Validator ServerAddress() {
  const auto check = [](const std::string& text) -> std::string {
    if (!text.empty() && text.find("://") == std::string::npos) return "";
    return absl::StrCat("expected HOST, HOST:PORT or unix:/path, got '", text, "'");
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

}  // namespace hpo
