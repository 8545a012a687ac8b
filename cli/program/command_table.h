// The table of all commands of `hpo`.
#pragma once

#include <string>

#include "cli/syntax/command.h"

namespace hpo::cli {

struct ChosenCommand {
  Action action;
  std::string words;  // "study list"
  Access access = Access::kChanges;
  Output output = Output::kForPeople;
};

// Declares the commands below `app`, with their help and its examples. As `app` reads a command
// line, `study` becomes the name that it gives, and `chosen` its command; both outlive `app`.
void DeclareCommands(CLI::App& app, std::string& study, ChosenCommand& chosen);

}  // namespace hpo::cli
