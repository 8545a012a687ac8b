// How much each parameter of a study matters, from its completed trials: what the methods take and
// give (ped_anova.h, fanova.h).
#pragma once

#include <string>
#include <vector>

#include "common/space/params.h"

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

// The same over resamples of the trials, each of as many drawn with replacement (bootstrap).
// Source: Efron 1979, "Bootstrap methods: another look at the jackknife".
struct ResampledImportance {
  std::vector<ParameterImportance> shares;  // largest first
  std::vector<std::vector<ParameterImportance>> resamples;
};

}  // namespace hpo
