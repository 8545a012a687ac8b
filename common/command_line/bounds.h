// What a number on a command line may be. CLI11's own checks print bounds such as the largest
// double with all its 309 digits.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hpo {

namespace bounds_internal {

inline CLI::Validator Check(double low, double high, const std::string& expected) {
  const auto check = [=](const std::string& text) -> std::string {
    double number = 0.0;
    if (absl::SimpleAtod(text, &number) && number >= low && number <= high) return "";
    return absl::StrCat("expected ", expected, ", got '", text, "'");
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

}  // namespace bounds_internal

inline CLI::Validator AtLeast(double low) {
  return bounds_internal::Check(low, 1e300, absl::StrCat("a number of at least ", low));
}

inline CLI::Validator Between(double low, double high) {
  return bounds_internal::Check(low, high, absl::StrCat("a number from ", low, " to ", high));
}

}  // namespace hpo
