// Several failures as one, so that a reader of many parts can tell all that is wrong at once.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hpo {

// Both failures, a line each, with the first one's code; the one that failed, or OK.
inline absl::Status Both(const absl::Status& first, const absl::Status& second) {
  if (first.ok() || second.ok()) return first.ok() ? second : first;
  return absl::Status(first.code(), absl::StrCat(first.message(), "\n", second.message()));
}

}  // namespace hpo
