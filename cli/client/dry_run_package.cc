// Tested by tests/cli/client/dry_run_package_test.cc.
#include "cli/client/dry_run_package.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/files/dry_run_package.h"
#include "common/files/spawn.h"

namespace hpo::cli {

absl::StatusOr<int> RunMemoryDryRun(const std::vector<std::string>& words) {
  std::vector<std::string> command = DryRunCommand("hpo: memory dry-run: ");
  command.insert(command.end(), words.begin(), words.end());
  execvp(command[0].c_str(), ExecPointers(command).data());
  return absl::InternalError(absl::StrCat("cannot run ", command[0], ": ", std::strerror(errno),
                                          "; memory dry-run needs it"));
}

}  // namespace hpo::cli
