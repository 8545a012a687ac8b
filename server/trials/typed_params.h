// What people and other programs give as values, in the types of a study's parameters. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "common/space/search_space.h"

namespace hpo::server {

// A whole number where the domain is of real numbers becomes real, a real one without a fraction
// where it is of whole numbers becomes whole; a number that equals a choice becomes that choice.
// Whether the values are allowed is not checked.
//   InvalidArgument  an unknown parameter; names it
absl::StatusOr<ParamMap> TypedParams(const SearchSpace& space, const ParamMap& given);

// Whether every value lies in the domain of its parameter, whatever conditions and narrowings say:
// a trial of before the ranges were edited may not.
bool IsWithin(const SearchSpace& space, const ParamMap& params);

}  // namespace hpo::server
