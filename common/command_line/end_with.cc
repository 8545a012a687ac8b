#include "common/command_line/end_with.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"

namespace hpo {

absl::Status EndWith(int64_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have ended before.
  if (getppid() == parent) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--end-with: expected the process that started this one, ", getppid(), ", got ", parent));
}

}  // namespace hpo
