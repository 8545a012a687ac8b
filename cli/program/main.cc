// hpo: see cli/program/command_table.cc for its commands.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "cli/program/program.h"
#include "cli/render/wrapped_output.h"
#include "common/command_line/standard_streams.h"
#include "common/tls/server_route.h"

int main(int argc, char** argv) {
  hpo::OpenStandardStreams();
  const hpo::cli::Terminal errors = hpo::cli::DetectTerminal(STDERR_FILENO);
  hpo::cli::WrappedOutput wrapped(std::cerr, std::max(1, errors.columns));
  std::ostream wrapped_err(&wrapped);
  std::ostream& err = errors.interactive && errors.columns > 0 ? wrapped_err : std::cerr;
  const hpo::tls::PrivateArguments words(argc, argv);
  const int status = hpo::cli::RunHpo(words.count(), words.data(),
                                      hpo::cli::DetectTerminal(STDOUT_FILENO), std::cout, err);
  return hpo::FinishOutput(std::cout, err, status);
}
