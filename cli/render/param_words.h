// "name=value" words of a command line, typed by a study's search space.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/space/search_space.h"

namespace hpo::cli {

// Ranges are left to the server, which also knows the constraints.
// `unknown` begins what is said of a parameter that the space lacks.
//   InvalidArgument  a word without '=', a parameter named twice or unknown (with a suggestion), a
//                    value that is not of the parameter's type, a choice that is none
absl::StatusOr<ParamMap> ParseParamWords(const std::vector<std::string>& words,
                                         const SearchSpace& space,
                                         absl::string_view unknown = "the study has no parameter");

}  // namespace hpo::cli
