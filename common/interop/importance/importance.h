// How much each parameter of a study matters, from its completed trials. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "common/space/search_space.h"

namespace hpo {

struct AssessedTrial {
  ParamMap params;
  double loss = 0.0;  // finite; smaller is better
};

// Shares are >= 0 and sum to 1.
struct ParameterImportance {
  std::string name;
  double share = 0.0;
  bool operator==(const ParameterImportance&) const = default;
};

// Errors of both methods:
//   FailedPrecondition  fewer than 2 trials, all of one loss, or no parameter with two values that
//                       the method can assess

// What made trials good: for each parameter, how far its distribution among the best tenth of the
// trials (at least one; ties included) is from that among all, by Pearson's divergence on a grid of
// at most 50 cells. A conditional parameter counts by the trials that have it; a parameter that
// fewer than two have gets 0. Largest share first, equal ones by name. Deterministic, O(trials).
// Source: Watanabe, Bansal and Hutter 2023, "PED-ANOVA"; regimes after "Conditional PED-ANOVA"
// (arXiv 2601.20800). Golden data: scripts/reference/importance.py.
absl::StatusOr<std::vector<ParameterImportance>> PedAnovaImportance(
    const SearchSpace& space, const std::vector<AssessedTrial>& trials);

// What moved the loss, over the whole space: for each parameter, the variance of the marginal mean
// along it as a share of the variance, in the mean over the trees of a random forest; normalised.
// Logarithmic parameters are measured on their logarithmic scale. Only parameters that every trial
// has are assessed. Draws by a random stream of its own: the same trials, the same shares.
// Source: Hutter, Hoos and Leyton-Brown 2014, "An efficient approach for assessing hyperparameter
// importance".
absl::StatusOr<std::vector<ParameterImportance>> FanovaImportance(
    const SearchSpace& space, const std::vector<AssessedTrial>& trials);

}  // namespace hpo
