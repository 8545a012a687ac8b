// `hpo trial list --where ... --sort ...`: which trials, and in which order. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/study/attributes.h"
#include "common/study/trial.h"

namespace hpo::cli {

// Those of `trials` that `numbers` has; in the order of `numbers`, or as they are.
std::vector<Trial> SelectTrials(std::vector<Trial> trials, const std::vector<int64_t>& numbers,
                                bool in_order_of_numbers);

// What the server says of a condition or an order, of the option that it was given with.
absl::Status OfOption(const absl::Status& refused);

// Whether all of `tags` are there.
bool HasTags(const Attributes& attributes, const std::vector<std::string>& tags);

}  // namespace hpo::cli
