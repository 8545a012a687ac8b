// A command of `hpo` as a row of the table of commands (cli/program/command_table.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/session.h"

namespace CLI {
class App;
}

namespace hpo::cli {

// What a chosen command does; returns the exit status where it is not the status' own.
using Action = std::function<absl::StatusOr<int>(Session&)>;

// An action that is done when it is OK.
Action Plain(std::function<absl::Status(Session&)> action);

// Declares the options of `command` and returns what it does. CLI11 keeps references to the values
// of the options, so the action owns them. `study` is the value of --study; it outlives both.
using Declaration = std::function<Action(CLI::App& command, std::string& study)>;

// Of a command without options.
Declaration WithoutOptions(Action action);

enum class Access {
  kReads,    // only reads studies as they are, so that a database file will do
  kChanges,  // changes something, follows a study, or needs no study at all
};

enum class Output {
  kForPeople,  // lines may be broken at the terminal's width
  kVerbatim,   // a script, a file, or what a program has printed: stays as it is
};

// A command, or with `commands` a group of them.
struct Command {
  std::string name;
  std::string help;
  Access access = Access::kChanges;
  Declaration declare;  // a group has none
  Output output = Output::kForPeople;
  std::string examples;  // lines for its help and that of its commands, beyond those of hpo --help
  std::vector<Command> commands;
};

}  // namespace hpo::cli
