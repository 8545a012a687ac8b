#include "cli/render/params_yaml.h"

#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/render/wording.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

// JSON is YAML, but for "3e-05", which YAML 1.1 takes for text without a point.
std::string Scalar(const ParamValue& value) {
  std::string text = ParamToJson(value).dump();
  const size_t exponent = text.find('e');
  if (std::holds_alternative<double>(value) && exponent != std::string::npos &&
      !absl::StrContains(text, '.')) {
    text.insert(exponent, ".0");
  }
  return text;
}

std::string Document(const Trial& trial, const StudySpec& study) {
  std::string text = absl::StrCat("# trial ", Hash(trial.id.number), " of ", study.name);
  for (const Objective& objective : study.objectives) {
    absl::StrAppend(&text, ", ", objective.metric, " ", OrDash(MetricOf(trial, objective.metric)));
  }
  absl::StrAppend(&text, "\n");
  for (const auto& [name, value] : trial.params) {
    absl::StrAppend(&text, name, ": ", Scalar(value), "\n");
  }
  return text;
}

}  // namespace

std::string ParamsYaml(const std::vector<Trial>& trials, const StudySpec& study) {
  std::string text;
  for (const Trial& trial : trials) {
    absl::StrAppend(&text, text.empty() ? "" : "---\n", Document(trial, study));
  }
  return text;
}

}  // namespace hpo::cli
