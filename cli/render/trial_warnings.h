// What trainers warned of, from a worker's log (common/base/log.h). Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo::cli {

// The texts of the lines "TIME warn trial #3: TEXT", each once, in their order; at most `most`,
// then one that says how many there are more.
std::vector<std::string> TrialWarnings(absl::string_view log, size_t most);

}  // namespace hpo::cli
