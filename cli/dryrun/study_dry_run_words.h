// The command line of `hpo memory dry-run STUDY.yaml`.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

namespace hpo::cli {

struct StudyDryRunOptions {
  std::string study;  // a study file
  // Words for the Python package: the GPUs, and what holds for each dry run.
  std::vector<std::string> passed_on;
  int64_t sample = 40;                  // most dry runs
  bool runs_all = false;                // no conclusions
  std::vector<std::string> parameters;  // of the chart: across, down; empty: those that matter most
  int64_t jobs = 1;                     // dry runs at once
  uint64_t seed = 0;
  bool json = false;
  std::vector<std::string> command;  // of the program; empty: the study's
};

// Whether the words after `memory dry-run` are for a study: the first one that is neither an option
// nor an option's value ends in .yaml or .yml.
bool IsForStudy(const std::vector<std::string>& words);

// Reads words for which IsForStudy is true. Returns the exit status instead where the command is
// over: after help, which it writes to `out` in lines of `columns`, and after a wrong command line,
// which it explains in one line on `err`.
std::variant<StudyDryRunOptions, int> ReadStudyDryRunWords(const std::vector<std::string>& words,
                                                           std::ostream& out, std::ostream& err,
                                                           int columns);

}  // namespace hpo::cli
