// Error handling for everything outside the trainer: absl::Status, two macros to pass one on, and
// HPO_CHECK for our own bugs (never for input, network, disk or GPU).
//
// Conventions. Codes are gRPC's. A message says what was expected, what came and where, e.g.
// "studies/my.yaml:12:5: parameters.train.lr: expected low < high, got [0.1, 0.1]".
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace hpo {

// Prints "file:line: check failed: condition" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

// `status` with `context` put in front of its message, once: "context: message". OK stays OK.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// InvalidArgument "where: expected this, got that".
absl::Status Unexpected(absl::string_view where, absl::string_view expected, absl::string_view got);

}  // namespace hpo

#define HPO_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::hpo::CheckFailed(__FILE__, __LINE__, #condition))

#define HPO_RETURN_IF_ERROR(expression)                             \
  do {                                                              \
    if (absl::Status hpo_status = (expression); !hpo_status.ok()) { \
      return hpo_status;                                            \
    }                                                               \
  } while (false)

#define HPO_STATUS_CONCAT_INNER(a, b) a##b
#define HPO_STATUS_CONCAT(a, b) HPO_STATUS_CONCAT_INNER(a, b)

// HPO_ASSIGN_OR_RETURN(const Plan plan, MakePlan(...));
#define HPO_ASSIGN_OR_RETURN(declaration, expression) \
  HPO_ASSIGN_OR_RETURN_IMPL(HPO_STATUS_CONCAT(hpo_status_or_, __LINE__), declaration, expression)
#define HPO_ASSIGN_OR_RETURN_IMPL(result, declaration, expression) \
  auto result = (expression);                                      \
  if (!result.ok()) return std::move(result).status();             \
  declaration = *std::move(result)
