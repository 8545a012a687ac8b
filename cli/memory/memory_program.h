// The command lines of `hpo memory`.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "cli/client/session.h"

namespace CLI {
class App;
}

namespace hpo {

// `hpo memory ...`: it does not fit.
constexpr int kExitDoesNotFit = 3;

// What a chosen command does; returns the exit status where it is not the status' own.
using Action = std::function<absl::StatusOr<int>(Session&)>;

// An action that is done when it is OK.
Action Plain(std::function<absl::Status(Session&)> action);

// Declares the commands below `group`. `on_chosen` is told what each of them does; what it holds
// lives on the heap as long as the action, because CLI11 keeps references to it.
void AddMemoryCommands(CLI::App& group, const std::function<void(CLI::App*, Action)>& on_chosen);

}  // namespace hpo
