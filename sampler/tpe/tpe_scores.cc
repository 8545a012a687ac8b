#include "sampler/tpe/tpe_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace hpo::sampler {
namespace {

double WorstIfNan(double log) {
  return std::isnan(log) ? -std::numeric_limits<double>::infinity() : log;
}

}  // namespace

void TpeScores::Multiply(const std::string& name, std::vector<double> logs, double exponent) {
  HPO_CHECK(logs.size() == totals_.size());
  for (size_t i = 0; i < logs.size(); ++i) {
    logs[i] = WorstIfNan(exponent * logs[i]);
    totals_[i] = WorstIfNan(totals_[i] + logs[i]);
  }
  factors_.push_back({name, std::move(logs)});
}

double TpeScores::Factor::Lead(size_t chosen) const {
  std::vector<double> others = logs;
  const auto middle = others.begin() + static_cast<ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  return logs[chosen] - *middle;
}

std::string TpeScores::Explain(size_t chosen) const {
  const Factor* decided = &factors_.front();
  for (const Factor& factor : factors_) {
    if (factor.Lead(chosen) > decided->Lead(chosen)) decided = &factor;
  }
  std::string text =
      absl::StrFormat("decided by %s: %.3g times as likely among the good trials as among all",
                      decided->name, std::exp(totals_[chosen]));
  if (factors_.size() == 1) return text;
  const auto add_factor = [chosen](std::string* out, const Factor& factor) {
    absl::StrAppendFormat(out, "%s %.3g", factor.name, std::exp(factor.logs[chosen]));
  };
  return absl::StrCat(text, " (", absl::StrJoin(factors_, ", ", add_factor), ")");
}

}  // namespace hpo::sampler
