// Command lines of the programs. CLI11 throws; this is the one place where that is caught.
#pragma once

#include <optional>
#include <ostream>

#include "absl/strings/string_view.h"
#include "common/command_line/wrapped_line.h"

namespace CLI {
class App;
}

namespace hpo {

// Exit status of a program that was called wrongly.
constexpr int kUsageExit = 2;

// Reads the command line into `app`'s variables. nullopt: go on. Otherwise the program is over with
// the returned exit status:
//   0  --help or --version; its text is on `out`, in lines of `columns`
//   2  a wrong command line; one line is on `err`: "hpo: no option --sever; did you mean
//   '--server'?" A join string in the wrong place is wrong, and is not shown.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv,
                                    std::ostream& out, std::ostream& err,
                                    int columns = kTextColumns);

// Whether the command line itself has `option` ("--server"), whatever the environment says.
bool NamesOption(absl::string_view option, int argc, const char* const* argv);

}  // namespace hpo
