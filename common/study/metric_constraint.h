// What a study demands of its trials apart from their quality: limits on metrics that they report.
// Plain values; pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// At least one limit; both make a range.
struct MetricConstraint {
  std::string metric;
  std::optional<double> at_least;
  std::optional<double> at_most;
  bool operator==(const MetricConstraint&) const = default;
};

//   InvalidArgument  no metric, no limit, one that is not finite, or at_least above at_most
absl::Status ValidateConstraint(const MetricConstraint& constraint);

// How far the metric lies beyond the nearer limit, in its own unit; <= 0: the constraint is kept.
// +infinity where the metric is missing or not finite: what was not shown to be kept counts as
// violated, and as worse than whatever was measured.
double ExcessOf(const MetricConstraint& constraint, const std::map<std::string, double>& metrics);

// The same of each constraint, as a share of that limit's magnitude (as it is where that is 0), by
// which different metrics are compared.
std::vector<double> ExcessesOf(const std::vector<MetricConstraint>& constraints,
                               const std::map<std::string, double>& metrics);

// How far a trial's metrics are from what all constraints allow: the sum of what of ExcessesOf() is
// above 0. 0: feasible.
double ViolationOf(const std::vector<MetricConstraint>& constraints,
                   const std::map<std::string, double>& metrics);

// "latency_ms at most 50", "recall at least 0.9", "size at least 1 and at most 2".
std::string DescribeConstraint(const MetricConstraint& constraint);

}  // namespace hpo
