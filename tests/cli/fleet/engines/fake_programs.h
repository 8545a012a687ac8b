// Programs of engines that answer from a list, and remember how they were called.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/fleet/engines/fleet_engine.h"

namespace hpo::cli {

class FakePrograms {
 public:
  // The next call of `program` ends like this. With none left, the last one is given again.
  void Add(const std::string& program, ProgramOutput output) {
    answers_[program].push_back(std::move(output));
  }

  EngineMeans means() {
    return {.run = [this](const ProgramCall& call) { return Run(call); },
            .pause =
                [this](absl::Duration) {
                  ++num_pauses;
                  return !is_interrupted;
                },
            .notify = [this](const std::string& text) { told.push_back(text); }};
  }

  std::vector<std::string> calls;        // the words of each, joined by blanks
  std::vector<absl::Duration> patience;  // of each call
  std::vector<std::string> told;
  int num_pauses = 0;
  bool is_interrupted = false;

 private:
  absl::StatusOr<ProgramOutput> Run(const ProgramCall& call) {
    const std::vector<std::string>& words = call.words;
    patience.push_back(call.patience);
    calls.push_back(absl::StrJoin(words, " "));
    std::vector<ProgramOutput>& left = answers_[words[0]];
    if (left.empty()) return absl::NotFoundError(absl::StrCat("no program ", words[0], " in PATH"));
    ProgramOutput answer = left.front();
    if (left.size() > 1) left.erase(left.begin());
    return answer;
  }

  std::map<std::string, std::vector<ProgramOutput>> answers_;
};

}  // namespace hpo::cli
