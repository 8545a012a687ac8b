// Options that commands of several groups have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/commands/studies/annotate_command.h"

namespace CLI {
class App;
}

namespace hpo::cli {

// A study's name as a command's own argument; the same as --study.
void AddNameArgument(CLI::App& command, std::string& study);

// The one trial that a command is about.
void AddTrialNumber(CLI::App& command, int64_t& number);

// --tag of a list.
void AddTagFilter(CLI::App& list, std::vector<std::string>& tags);

// Notes, tags and attributes of a study or of a trial.
void AddAnnotations(CLI::App& annotate, AnnotateOptions& options);

}  // namespace hpo::cli
