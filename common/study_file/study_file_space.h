// The search space of a study file: its key `parameters`, and the elements of `constraints` that
// narrow it. Part of common/study_file/study_file.h.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/space/search_space.h"
#include "common/study_file/yaml_reader.h"

namespace hpo {

// Reads and checks the space; parameters are put in an order with parents before children, else as
// in the file. Model facts are left empty.
//   InvalidArgument  "file:line:column: path: ...", at the value at fault
absl::StatusOr<SearchSpace> ReadSpace(const YamlValue& parameters,
                                      const std::vector<YamlValue>& narrowings);

}  // namespace hpo
