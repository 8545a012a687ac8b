// What may change in a study that has trials: by a changed file, and by `hpo study edit`. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "common/space/search_space.h"
#include "common/study/study.h"

namespace hpo {

// What a changed file may bring: budget, and choices added to a categorical (an added model may be
// listed in heavy_models too). Returns `stored` with those taken from `file`. The order of
// parameters and choices, and model facts, are no difference.
//   FailedPrecondition  anything else differs; names the first field, its stored and its new value
absl::StatusOr<StudySpec> MergeChangedStudy(const StudySpec& stored, const StudySpec& file);

// What `hpo study edit` may: the ranges and choices of parameters, their defaults and what narrows
// them. `stored` with those of `file`, and its own budget.
//   FailedPrecondition  a parameter of another kind, or anything else differs; names it
absl::StatusOr<StudySpec> EditedStudy(const StudySpec& stored, const StudySpec& file);

//   FailedPrecondition  `domain` is a range of another kind than `parameter` had, or choices for a
//                       range
absl::Status CheckSameKind(const Parameter& parameter, const Domain& domain);

}  // namespace hpo
