// The configurations of a search space among which a frontier is looked for. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "common/space/search_space.h"

namespace hpo::memory {

struct FrontierSpaceOptions {
  // Parameters on which memory may depend. Those that decide whether these exist are added.
  std::vector<std::string> relevant;
  // Number of values of one parameter. Of more, as many are taken at even distances, by the
  // parameter's own scale, both ends included. Choices are never left out.
  size_t most_values = 12;
  // Where there are more configurations, as many are drawn at random.
  size_t most_configurations = 2000;
  uint64_t seed = 0;
};

// One parameter that is varied.
struct FrontierAxis {
  std::string name;
  // In the order of the numbers, or of the choices.
  std::vector<ParamValue> values;
  bool is_number = false;
};

struct FrontierSpace {
  std::vector<FrontierAxis> axes;  // in the space's order; parents before children
  // Each has all parameters that exist in it. Parameters on which memory does not depend have their
  // default, else a value from the middle.
  std::vector<ParamMap> configurations;
  bool is_thinned = false;  // a parameter has more values than are considered
  bool is_sampled = false;  // there are more configurations than are considered
};

// At most `most` values of a domain, at even distances by its own scale, both ends included;
// choices are never left out. Without duplicates: numbers in ascending order, choices in their own.
std::vector<ParamValue> ThinnedValues(const Domain& domain, size_t most);

// A value for a parameter that is not varied: its default, else one from the middle of `allowed`.
ParamValue Representative(const Parameter& parameter, const Domain& allowed);

//   InvalidArgument  one of `names` is no parameter of the space
absl::Status CheckNames(const SearchSpace& space, const std::vector<std::string>& names);

// Names of the parameters on which memory may depend where nobody names them: whole numbers and
// choices that are modelled and have several values (as need_terms.h).
std::vector<std::string> UsualRelevant(const SearchSpace& space);

//   InvalidArgument     a name that is no parameter of the space
//   FailedPrecondition  constraints leave nothing of the space
absl::StatusOr<FrontierSpace> FrontierSpaceOf(const SearchSpace& space,
                                              const FrontierSpaceOptions& options);

}  // namespace hpo::memory
