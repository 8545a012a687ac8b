// What made trials good. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/interop/importance/importance.h"
#include "common/space/search_space.h"

namespace hpo {

// What made trials good: for each parameter, how far its distribution among the best tenth of the
// trials (at least one; ties included) is from that among all, by Pearson's divergence on a grid of
// at most 50 cells. A conditional parameter counts by the trials that have it; a parameter that
// fewer than two have, or that has the same cell in all, gets 0. Largest share first, equal ones by
// name. Deterministic, O(trials). Source: Watanabe, Bansal and Hutter 2023, "PED-ANOVA"; regimes
// after "Conditional PED-ANOVA" (arXiv 2601.20800). Golden data: scripts/reference/importance.py.
//   FailedPrecondition  fewer than 2 trials, all of one loss, or no parameter with two values that
//                       the method can assess
absl::StatusOr<std::vector<ParameterImportance>> PedAnovaImportance(
    const SearchSpace& space, const std::vector<AssessedTrial>& trials);

// The same, and over resamples of the trials (200, of more than 10,000 fewer), drawn by a random
// stream of its own. Codes: the same.
absl::StatusOr<ResampledImportance> ResampledPedAnova(const SearchSpace& space,
                                                      const std::vector<AssessedTrial>& trials);

}  // namespace hpo
