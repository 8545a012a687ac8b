// `hpo completion`: what may follow on a command line, taken from the definition of the commands.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace hpo::cli {

struct Completions {
  enum class Paths { kNone, kFiles, kFolders };

  struct Candidate {
    std::string word;
    std::string description;
    bool operator==(const Candidate&) const = default;
  };
  std::vector<Candidate> candidates;  // each begins with what was typed of the last word
  Paths paths = Paths::kNone;         // paths may follow as well
  // Where names of studies may follow: what was typed of one, after `study_prefix`.
  bool wants_studies = false;
  std::string study_prefix;  // such as "--study="
  // Values of --server and --db that the words give; empty: none.
  std::string server;
  std::string database;
};

// `words` are those after the program's name; the last one is incomplete, and may be empty.
Completions CompleteWords(const CLI::App& app, const std::vector<std::string>& words);

// Adds those of `studies` that begin with what was typed.
void AddStudyNames(const std::vector<std::string>& studies, const std::string& typed,
                   Completions& completions);

// What the scripts below read: a candidate a line, with a tab before its description, then
// ":files", ":folders" or ":none".
std::string CompletionText(const Completions& completions);

// The script that has a shell ask `hpo __complete WORD...` at each completion, so that it knows
// whatever the program knows. `shell`: bash, zsh or fish.
//   InvalidArgument  another shell
absl::StatusOr<std::string> CompletionScript(const std::string& shell);

}  // namespace hpo::cli
