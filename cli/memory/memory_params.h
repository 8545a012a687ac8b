// The parameters of a configuration that memory depends on, as words of a command line.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/space/params.h"

namespace hpo::cli {

// "train.batch_size=48 lora.base=nf4 ...".
//   InvalidArgument  a word without '=', a parameter that is unknown (with a suggestion) or given
//                    twice, a value out of its range
absl::StatusOr<ParamMap> ParseMemoryParams(const std::vector<std::string>& words);

// model.name of them.
//   InvalidArgument  it is not given
absl::StatusOr<std::string> ModelNameOf(const ParamMap& params);

}  // namespace hpo::cli
