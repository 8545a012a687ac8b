// What `hpo study edit` may change in a study that has trials: the ranges and choices of its
// parameters, their defaults and what narrows them. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "common/space/search_space.h"
#include "common/study/study.h"

namespace hpo {

// `stored` with those of `file`, and its own budget.
//   FailedPrecondition  a parameter of another kind, or anything else differs; names it
absl::StatusOr<StudySpec> EditedStudy(const StudySpec& stored, const StudySpec& file);

//   FailedPrecondition  `domain` is no range, or no choices of the type, that `parameter` had
absl::Status CheckSameKind(const Parameter& parameter, const Domain& domain);

}  // namespace hpo
