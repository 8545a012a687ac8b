// hpo-sampler: proposes for a process that keeps its trials itself (proposal_service.h). hpo.optuna
// starts it.
#include <iostream>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/command_line/command_line.h"
#include "sampler/proposer/proposal_service.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Proposes configurations: reads requests as lines of JSON from standard input and answers "
      "each by a line. The Python package's hpo.optuna starts it.",
      "hpo-sampler");
  app.set_version_flag("--version", absl::StrCat("hpo-sampler ", hpo::Version()));
  const std::optional<int> over = hpo::ParseCommandLine(app, argc, argv, std::cout, std::cerr);
  if (over) return *over;
  hpo::sampler::AnswerLines(std::cin, std::cout);
  return 0;
}
