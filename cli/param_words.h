// "name=value" words of a command line, typed by a study's search space.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/search_space.h"

namespace hpo {

// Ranges are left to the server, which also knows the constraints.
//   InvalidArgument  a word without '=', a parameter named twice or unknown (with a suggestion), a
//                    value that is not of the parameter's type, a choice that is none
absl::StatusOr<ParamMap> ParseParamWords(const std::vector<std::string>& words,
                                         const SearchSpace& space);

}  // namespace hpo
