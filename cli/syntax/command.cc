#include "cli/syntax/command.h"

#include <utility>

#include "common/command_line/exit_status.h"

namespace hpo::cli {

Action Plain(std::function<absl::Status(Session&)> action) {
  return [action = std::move(action)](Session& session) -> absl::StatusOr<int> {
    if (absl::Status status = action(session); !status.ok()) return status;
    return kExitOk;
  };
}

Declaration WithoutOptions(Action action) {
  return [action = std::move(action)](CLI::App&, std::string&) { return action; };
}

}  // namespace hpo::cli
