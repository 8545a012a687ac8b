// What the server says of a configuration's memory, for people. Pure. `width`: the terminal's
// columns, 0 for unlimited.
#pragma once

#include <string>

#include "cli/client/trial_client.h"

namespace hpo::cli {

// The estimate by class and the verdict.
std::string MemoryText(const MemoryVerdict& verdict, int width);

// Two estimates side by side, with what the second has more or less.
std::string CompareText(const MemoryVerdict& before, const MemoryVerdict& after, int width);

}  // namespace hpo::cli
