#include "common/interop/importance/study_importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/interop/importance/fanova.h"
#include "common/interop/importance/ped_anova.h"

namespace hpo {
namespace {

constexpr double kLow = 0.05;
constexpr double kHigh = 0.95;

SearchSpace Modelled(const SearchSpace& space) {
  SearchSpace modelled = space;
  std::erase_if(modelled.parameters,
                [](const Parameter& parameter) { return !parameter.modelled; });
  return modelled;
}

// Of sorted values, between two of them by their distance; 0 of none.
double Percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0.0;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - std::floor(place);
  return (1.0 - part) * sorted[below] + part * sorted[above];
}

}  // namespace

absl::StatusOr<Objective> FindObjective(const StudySpec& spec, const std::string& metric,
                                        absl::string_view field) {
  if (metric.empty()) return spec.objectives.front();
  std::vector<std::string> known;
  for (const Objective& objective : spec.objectives) {
    if (objective.metric == metric) return objective;
    known.push_back(objective.metric);
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected an objective of ", spec.name,
                                                 ", ", absl::StrJoin(known, " or "), "; got '",
                                                 metric, "'"));
}

double LossOf(const Objective& objective, double value) {
  return objective.direction == Direction::kMaximize ? -value : value;
}

absl::StatusOr<ImportanceAssessment> AssessImportance(const SearchSpace& space,
                                                      const std::vector<AssessedTrial>& trials,
                                                      ImportanceMethod method) {
  const auto assess = method == ImportanceMethod::kFanova ? ResampledFanova : ResampledPedAnova;
  HPO_ASSIGN_OR_RETURN(const ResampledImportance resampled, assess(Modelled(space), trials));
  const size_t num_resamples = resampled.resamples.size();
  std::map<std::string, std::vector<double>> drawn;
  for (const auto& shares : resampled.resamples) {
    for (const ParameterImportance& parameter : shares) {
      drawn[parameter.name].push_back(parameter.share);
    }
  }
  ImportanceAssessment assessment{.num_resamples = static_cast<int64_t>(num_resamples)};
  for (const ParameterImportance& parameter : resampled.shares) {
    std::vector<double>& shares = drawn[parameter.name];
    std::sort(shares.begin(), shares.end());
    assessment.parameters.push_back({.name = parameter.name,
                                     .share = parameter.share,
                                     .low = Percentile(shares, kLow),
                                     .high = Percentile(shares, kHigh)});
  }
  return assessment;
}

}  // namespace hpo
