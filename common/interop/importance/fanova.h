// What moved the loss, over the whole space. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/interop/importance/importance.h"
#include "common/space/search_space.h"

namespace hpo {

// What moved the loss, over the whole space: for each parameter, the variance of the marginal mean
// along it as a share of the variance, in the mean over the trees of a random forest; normalised.
// Logarithmic parameters are measured on their logarithmic scale. Only parameters that every trial
// has are assessed. Each tree sees a resample of the trials, of at most 4,000. Draws by a random
// stream of its own: the same trials, the same shares. Source: Hutter, Hoos and Leyton-Brown 2014,
// "An efficient approach for assessing hyperparameter importance".
//   FailedPrecondition  fewer than 2 trials, all of one loss, or no parameter with two values that
//                       the method can assess
absl::StatusOr<std::vector<ParameterImportance>> FanovaImportance(
    const SearchSpace& space, const std::vector<AssessedTrial>& trials);

// The same with the shares of each tree, which is grown on a resample of the trials. Codes: the
// same.
absl::StatusOr<ResampledImportance> ResampledFanova(const SearchSpace& space,
                                                    const std::vector<AssessedTrial>& trials);

}  // namespace hpo
