#include "common/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace hpo {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

absl::Status Unexpected(absl::string_view where, absl::string_view expected,
                        absl::string_view got) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": expected ", expected, ", got ", got));
}

}  // namespace hpo
