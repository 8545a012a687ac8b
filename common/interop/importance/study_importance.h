// The importance of a study's parameters with how sure it is: what the server and the command line
// share. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/interop/importance/importance.h"
#include "common/space/search_space.h"
#include "common/study/study.h"

namespace hpo {

enum class ImportanceMethod { kPedAnova, kFanova };

// The study's objective of that metric; the first where none is named. Messages begin with `field`.
//   InvalidArgument  there is none; names those there are
absl::StatusOr<Objective> FindObjective(const StudySpec& spec, const std::string& metric,
                                        absl::string_view field);

// Smaller is better.
double LossOf(const Objective& objective, double value);

struct AssessedParameter {
  std::string name;
  double share = 0.0;
  // The 5th and the 95th percentile of the share over the resamples.
  double low = 0.0;
  double high = 0.0;
  bool operator==(const AssessedParameter&) const = default;
};

struct ImportanceAssessment {
  std::vector<AssessedParameter> parameters;  // largest share first; shares sum to 1
  int64_t num_resamples = 0;
};

// What is drawn and never modelled, such as a seed, is left out: it moves the metric by chance
// only. Draws by random streams of its own: the same trials, the same answer.
//   FailedPrecondition  fewer than 2 trials, all of one loss, or no parameter with two values that
//                       the method can assess
absl::StatusOr<ImportanceAssessment> AssessImportance(const SearchSpace& space,
                                                      const std::vector<AssessedTrial>& trials,
                                                      ImportanceMethod method);

}  // namespace hpo
