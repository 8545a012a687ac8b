#include "common/interop/importance/assessment.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

bool IsLog(const Domain& domain) {
  const auto* real = std::get_if<FloatDomain>(&domain);
  const auto* whole = std::get_if<IntDomain>(&domain);
  return (real != nullptr && real->log) || (whole != nullptr && whole->log);
}

}  // namespace

absl::Status CheckAssessable(const std::vector<AssessedTrial>& trials) {
  if (trials.size() < 2) {
    return absl::FailedPreconditionError(
        absl::StrCat("importance: expected at least 2 completed trials with a finite value, got ",
                     trials.size()));
  }
  const double first = trials.front().loss;
  for (const AssessedTrial& trial : trials) {
    if (trial.loss != first) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("importance: expected trials that differ, got ", trials.size(),
                   " with the same value, so there is nothing to explain"));
}

Range RangeOf(const Domain& domain) {
  Range range;
  if (const auto* real = std::get_if<FloatDomain>(&domain)) {
    range = {real->low, real->high};
    if (real->step.has_value()) {
      // A grid that ends at `high` may miss it by rounding.
      const double steps = std::floor((real->high - real->low) / *real->step + 1e-8);
      range.high = real->low + steps * *real->step;
    }
  } else if (const auto* whole = std::get_if<IntDomain>(&domain)) {
    const int64_t steps = (whole->high - whole->low) / whole->step;
    range = {static_cast<double>(whole->low),
             static_cast<double>(whole->low + steps * whole->step)};
  }
  return IsLog(domain) ? Range{std::log(range.low), std::log(range.high)} : range;
}

std::optional<double> Coordinate(const Domain& domain, const ParamValue& value) {
  if (const auto* categorical = std::get_if<CategoricalDomain>(&domain)) {
    const auto& choices = categorical->choices;
    const auto found = std::find(choices.begin(), choices.end(), value);
    if (found == choices.end()) return std::nullopt;
    return static_cast<double>(found - choices.begin());
  }
  const std::optional<double> number = AsNumber(value);
  if (!number.has_value() || !IsLog(domain)) return number;
  return std::log(*number);
}

size_t NumChoices(const Domain& domain) {
  const auto* categorical = std::get_if<CategoricalDomain>(&domain);
  return categorical == nullptr ? 0 : categorical->choices.size();
}

absl::StatusOr<std::vector<ParameterImportance>> Normalized(
    std::vector<ParameterImportance> weights) {
  double sum = 0.0;
  for (const ParameterImportance& weight : weights) sum += weight.share;
  if (!(sum > 0.0)) {
    return absl::FailedPreconditionError(
        "importance: expected a parameter that takes two values and matters, got none");
  }
  for (ParameterImportance& weight : weights) weight.share /= sum;
  std::sort(weights.begin(), weights.end(), [](const auto& a, const auto& b) {
    return a.share != b.share ? a.share > b.share : a.name < b.name;
  });
  return weights;
}

}  // namespace hpo
