// Which of several completed trials are best when there is more than one objective. Pure.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/study/study.h"
#include "common/study/trial.h"

namespace hpo::server {

// Of the feasible trials, or where there is none of the least violating ones, those that no other
// one dominates (at least as good everywhere and better somewhere), in the order given. Trials that
// lack a metric of an objective are left out; NaN is worst. For cost and source see
// sampler/numeric/non_domination.h.
//   Cancelled  `cancelled`, which is asked every thousand trials, returned true
absl::StatusOr<std::vector<Trial>> ParetoFront(std::vector<Trial> completed,
                                               const std::vector<Objective>& objectives,
                                               absl::FunctionRef<bool()> cancelled);

}  // namespace hpo::server
