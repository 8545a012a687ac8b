// What PED-ANOVA and fANOVA share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/interop/importance/importance.h"
#include "common/space/search_space.h"

namespace hpo {

//   FailedPrecondition  fewer than 2 trials, or all of one loss
absl::Status CheckAssessable(const std::vector<AssessedTrial>& trials);

// From a numeric domain's lower end to the last value of its grid, or to its upper end where it has
// none; of a logarithmic one both as natural logarithms.
struct Range {
  double low = 0.0;
  double high = 0.0;
};
Range RangeOf(const Domain& domain);

// Where `value` lies in RangeOf(domain); of a categorical domain the number of the choice.
// nullopt: a choice that the domain does not have, or text for a number.
std::optional<double> Coordinate(const Domain& domain, const ParamValue& value);

// Number of choices; 0 for a numeric domain.
size_t NumChoices(const Domain& domain);

// Largest share first, equal ones by name; `weights` >= 0 are divided by their sum.
//   FailedPrecondition  the sum is 0
absl::StatusOr<std::vector<ParameterImportance>> Normalized(
    std::vector<ParameterImportance> weights);

}  // namespace hpo
