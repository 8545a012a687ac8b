#include "cli/commands/trial_selection.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/render/param_words.h"
#include "cli/render/wording.h"
#include "common/base/spelling.h"
#include "common/base/status.h"

namespace hpo {
namespace {

using SelectedField = std::variant<double, std::string>;

std::optional<SelectedField> NumberField(const std::optional<double>& number) {
  return number ? std::optional<SelectedField>(*number) : std::nullopt;
}

std::optional<SelectedField> FieldOf(const Trial& trial, const std::string& name) {
  if (const auto param = trial.params.find(name); param != trial.params.end()) {
    if (std::holds_alternative<Null>(param->second)) return std::nullopt;
    if (const auto number = AsNumber(param->second)) return *number;
    return FormatParam(param->second);
  }
  if (name == "number") return static_cast<double>(trial.id.number.value);
  if (name == "state") return absl::AsciiStrToLower(Name(trial.state));
  if (name == "value") return NumberField(trial.value);
  if (name != "time") return NumberField(MetricOf(trial, name));
  const bool ran = trial.started != absl::InfinitePast() && trial.ended != absl::InfinitePast();
  if (!ran) return std::nullopt;
  return absl::ToDoubleSeconds(trial.ended - trial.started);
}

absl::Status CheckName(const std::string& option, const std::string& name, const StudySpec& study,
                       const std::vector<Trial>& trials) {
  std::vector<std::string> known = {"number", "state", "value", "time"};
  for (const Parameter& parameter : study.space.parameters) known.push_back(parameter.name);
  for (const Objective& objective : study.objectives) known.push_back(objective.metric);
  const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
  const auto has_it = [&](const Trial& trial) { return FieldOf(trial, name).has_value(); };
  if (is_known || std::any_of(trials.begin(), trials.end(), has_it)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": expected a parameter, a metric, number, state, value or time, got '",
                   name, "'", DidYouMean(name, known)));
}

struct Comparison {
  std::string name;
  std::string comparison;
  std::string value;
  std::optional<ParamValue> choice;  // that `value` writes, of a parameter with choices
};

absl::StatusOr<Comparison> ParseComparison(const std::string& word) {
  const size_t at = word.find_first_of("!<>=");
  if (at != std::string::npos && at > 0) {
    for (const char* comparison : {"!=", "<=", ">=", "=", "<", ">"}) {
      absl::string_view rest = absl::string_view(word).substr(at);
      if (!absl::ConsumePrefix(&rest, comparison)) continue;
      return Comparison{std::string(absl::StripAsciiWhitespace(word.substr(0, at))), comparison,
                        std::string(absl::StripAsciiWhitespace(rest)), std::nullopt};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--where: expected NAME=VALUE, or with !=, <, <=, > or >= between, got '", word, "'"));
}

template <typename T>
bool Compare(const T& left, const std::string& comparison, const T& right) {
  if (comparison == "=") return left == right;
  if (comparison == "!=") return left != right;
  if (comparison == "<") return left < right;
  if (comparison == "<=") return left <= right;
  return comparison == ">" ? left > right : left >= right;
}

std::optional<ParamValue> ChoiceOf(const Comparison& condition, const StudySpec& study) {
  const Parameter* const parameter = study.space.Find(condition.name);
  const auto* choices =
      parameter == nullptr ? nullptr : std::get_if<CategoricalDomain>(&parameter->domain);
  const bool for_equal = condition.comparison == "=" || condition.comparison == "!=";
  return choices != nullptr && for_equal ? ChoiceWritten(*choices, condition.value) : std::nullopt;
}

bool Holds(const Trial& trial, const Comparison& condition) {
  const auto param = trial.params.find(condition.name);
  if (param != trial.params.end() && condition.choice) {
    return (param->second == *condition.choice) == (condition.comparison == "=");
  }
  const bool is_null = param != trial.params.end() && std::holds_alternative<Null>(param->second);
  if (is_null) return condition.comparison == "!=";
  const std::optional<SelectedField> field = FieldOf(trial, condition.name);
  if (!field) return false;
  double number = 0.0;
  if (const double* held = std::get_if<double>(&*field)) {
    return absl::SimpleAtod(condition.value, &number) &&
           Compare(*held, condition.comparison, number);
  }
  const std::string& text = std::get<std::string>(*field);
  const bool is_state = condition.name == "state";
  return Compare(text, condition.comparison,
                 is_state ? absl::AsciiStrToLower(condition.value) : condition.value);
}

void Sort(std::vector<Trial>& trials, const std::string& name, bool largest_first) {
  std::stable_sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
    const std::optional<SelectedField> left = FieldOf(a, name);
    const std::optional<SelectedField> right = FieldOf(b, name);
    if (!left || !right) return left.has_value() && !right.has_value();
    return largest_first ? *right < *left : *left < *right;
  });
}

}  // namespace

absl::StatusOr<std::vector<Trial>> SelectTrials(std::vector<Trial> trials, const StudySpec& study,
                                                const std::vector<std::string>& where,
                                                const std::string& sort) {
  absl::string_view sorted_by = sort;
  const bool largest_first = absl::ConsumePrefix(&sorted_by, "-");
  const std::string name(sorted_by);
  if (!sort.empty()) HPO_RETURN_IF_ERROR(CheckName("--sort", name, study, trials));
  std::vector<Comparison> conditions;
  for (const std::string& word : where) {
    HPO_ASSIGN_OR_RETURN(conditions.emplace_back(), ParseComparison(word));
    HPO_RETURN_IF_ERROR(CheckName("--where", conditions.back().name, study, trials));
    conditions.back().choice = ChoiceOf(conditions.back(), study);
  }
  std::erase_if(trials, [&conditions](const Trial& trial) {
    return !std::all_of(conditions.begin(), conditions.end(),
                        [&](const Comparison& condition) { return Holds(trial, condition); });
  });
  if (!sort.empty()) Sort(trials, name, largest_first);
  return trials;
}

bool HasTags(const Attributes& attributes, const std::vector<std::string>& tags) {
  return std::all_of(tags.begin(), tags.end(),
                     [&](const std::string& tag) { return HasTag(attributes, tag); });
}

}  // namespace hpo
