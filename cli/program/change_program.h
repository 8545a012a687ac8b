// The command lines that change what a study is or what is noted of it: edit, annotate, delete,
// restore, retry.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/memory/memory_program.h"

namespace hpo {

// How commands are declared in a group. `study` is the one that --study names; all of it outlives
// the program's run.
struct ChangeCommands {
  std::function<CLI::App*(const std::string& name, const std::string& help)> add;
  std::function<void(CLI::App*, Action)> on;
  std::string& study;
};

// Those of `hpo study` and of `hpo trial`.
void AddStudyChanges(const ChangeCommands& commands);
void AddTrialChanges(const ChangeCommands& commands);

// A study's name as a command's own argument; the same as --study.
void AddNameArgument(CLI::App* command, std::string& study);
// --tag of a list.
void AddTagFilter(CLI::App* list, std::vector<std::string>& tags);

}  // namespace hpo
