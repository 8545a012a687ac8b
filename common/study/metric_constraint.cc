#include "common/study/metric_constraint.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/space/params.h"
#include "common/study/study_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

absl::Status CheckLimit(absl::string_view name, const std::optional<double>& limit) {
  if (!limit.has_value() || std::isfinite(*limit)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": expected a finite number, got ", *limit));
}

// Beyond the nearer limit, each as `beyond` has it.
template <typename Beyond>
double NearerExcess(const MetricConstraint& constraint,
                    const std::map<std::string, double>& metrics, Beyond beyond) {
  const auto found = metrics.find(constraint.metric);
  if (found == metrics.end() || !std::isfinite(found->second)) return kInfinity;
  const double value = found->second;
  double excess = -kInfinity;
  if (const auto& low = constraint.at_least; low.has_value()) {
    excess = std::max(excess, beyond(*low - value, *low));
  }
  if (const auto& high = constraint.at_most; high.has_value()) {
    excess = std::max(excess, beyond(value - *high, *high));
  }
  return excess;
}

}  // namespace

absl::Status ValidateConstraint(const MetricConstraint& constraint) {
  if (constraint.metric.empty()) {
    return absl::InvalidArgumentError("metric: expected a name, got nothing");
  }
  if (!constraint.at_least.has_value() && !constraint.at_most.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("expected at_least, at_most or both for ",
                                                   constraint.metric, ", got neither"));
  }
  HPO_RETURN_IF_ERROR(CheckLimit("at_least", constraint.at_least));
  HPO_RETURN_IF_ERROR(CheckLimit("at_most", constraint.at_most));
  const bool empty = constraint.at_least.has_value() && constraint.at_most.has_value() &&
                     *constraint.at_least > *constraint.at_most;
  if (!empty) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected at_least <= at_most for ", constraint.metric, ", got ",
                   FormatParam(*constraint.at_least), " and ", FormatParam(*constraint.at_most)));
}

double ExcessOf(const MetricConstraint& constraint, const std::map<std::string, double>& metrics) {
  return NearerExcess(constraint, metrics, [](double excess, double) { return excess; });
}

std::vector<double> ExcessesOf(const std::vector<MetricConstraint>& constraints,
                               const std::map<std::string, double>& metrics) {
  const auto share = [](double excess, double limit) {
    return limit == 0.0 ? excess : excess / std::abs(limit);
  };
  std::vector<double> excesses;
  for (const MetricConstraint& constraint : constraints) {
    excesses.push_back(NearerExcess(constraint, metrics, share));
  }
  return excesses;
}

double ViolationOf(const std::vector<MetricConstraint>& constraints,
                   const std::map<std::string, double>& metrics) {
  double violation = 0.0;
  for (const double excess : ExcessesOf(constraints, metrics)) {
    violation += std::max(excess, 0.0);
  }
  return violation;
}

std::string DescribeConstraint(const MetricConstraint& constraint) {
  std::vector<std::string> limits;
  if (const auto& low = constraint.at_least; low.has_value()) {
    limits.push_back(absl::StrCat("at least ", FormatParam(*low)));
  }
  if (const auto& high = constraint.at_most; high.has_value()) {
    limits.push_back(absl::StrCat("at most ", FormatParam(*high)));
  }
  return absl::StrCat(constraint.metric, " ", absl::StrJoin(limits, " and "));
}

}  // namespace hpo
