// Identifiers. Each is its own type, so that an attempt can never be passed for a trial.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace hpo {

// The trial's number inside its study, from 0. Shown to people as "#12".
struct TrialNumber {
  int64_t value = 0;
  constexpr auto operator<=>(const TrialNumber&) const = default;
};

// One execution of a trial, from 1. It is the fencing token: a higher attempt supersedes a lower.
struct AttemptNumber {
  int64_t value = 1;
  constexpr auto operator<=>(const AttemptNumber&) const = default;
};

// A trial anywhere in the database.
struct TrialId {
  std::string study;
  TrialNumber number;
  auto operator<=>(const TrialId&) const = default;
};

// 128 random bits as 32 lower-case hexadecimal digits: request ids, sessions, lease tokens.
std::string RandomId();

}  // namespace hpo
