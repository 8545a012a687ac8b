#include "cli/commands/trials/trial_selection.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/client/terminal.h"
#include "cli/render/param_words.h"
#include "cli/render/wording.h"
#include "common/base/spelling.h"
#include "common/base/status.h"

namespace hpo::cli {
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

// Whether FieldOf gives a number for every trial that has this field.
bool IsNumber(const std::string& name, const StudySpec& study, const std::vector<Trial>& trials) {
  if (name == "state") return false;
  const Parameter* const parameter = study.space.Find(name);
  if (parameter != nullptr) return !std::holds_alternative<CategoricalDomain>(parameter->domain);
  return std::all_of(trials.begin(), trials.end(), [&name](const Trial& trial) {
    const std::optional<SelectedField> field = FieldOf(trial, name);
    return !field || std::holds_alternative<double>(*field);
  });
}

absl::Status CheckName(const std::string& option, const std::string& name, const StudySpec& study,
                       const std::vector<Trial>& trials) {
  std::vector<std::string> known = {"number", "state", "value", "time"};
  for (const Parameter& parameter : study.space.parameters) known.push_back(parameter.name);
  for (const Objective& objective : study.objectives) known.push_back(objective.metric);
  const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
  const auto has_it = [&](const Trial& trial) { return FieldOf(trial, name).has_value(); };
  if (is_known || std::any_of(trials.begin(), trials.end(), has_it)) return absl::OkStatus();
  std::string hint = DidYouMean(name, known);
  if (name == "tag" || name == "tags") hint = "; for tags: --tag NAME";
  if (name == "created" || name == "started" || name == "ended") {
    hint = "; times cannot be compared, but time, in seconds, can";
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": expected a parameter, a metric, number, state, value or time, got '",
                   name, "'", hint));
}

struct Comparison {
  std::string name;
  std::string comparison;
  std::string value;
  std::optional<ParamValue> choice;  // that `value` writes, of a parameter with choices
  std::optional<double> number;      // that `value` is, where numbers are compared
};

absl::StatusOr<Comparison> ParseComparison(const std::string& word) {
  const size_t at = word.find_first_of("!<>=");
  if (at != std::string::npos && at > 0) {
    for (const char* comparison : {"!=", "<=", ">=", "=", "<", ">"}) {
      absl::string_view rest = absl::string_view(word).substr(at);
      if (!absl::ConsumePrefix(&rest, comparison)) continue;
      return Comparison{.name = std::string(absl::StripAsciiWhitespace(word.substr(0, at))),
                        .comparison = comparison,
                        .value = std::string(absl::StripAsciiWhitespace(rest))};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--where: expected NAME=VALUE, or with !=, <, <=, > or >= between, got '", word, "'"));
}

bool Compare(double left, const std::string& comparison, double right) {
  if (comparison == "=") return left == right;
  if (comparison == "!=") return left != right;
  if (comparison == "<") return left < right;
  if (comparison == "<=") return left <= right;
  return comparison == ">" ? left > right : left >= right;
}

bool IsEquality(const Comparison& condition) {
  return condition.comparison == "=" || condition.comparison == "!=";
}

absl::Status CannotCompare(const Comparison& condition, absl::string_view expected,
                           const std::vector<std::string>& known = {}) {
  return absl::InvalidArgumentError(absl::StrCat("--where: ", condition.name, ": expected ",
                                                 expected, ", got '", condition.value, "'",
                                                 DidYouMean(condition.value, known)));
}

absl::Status ReadNumber(Comparison& condition) {
  double number = 0.0;
  if (absl::SimpleAtod(condition.value, &number) && !std::isnan(number)) {
    condition.number = number;
    return absl::OkStatus();
  }
  return CannotCompare(condition, condition.name == "time" ? "a number of seconds" : "a number");
}

// `why`: what is compared has no order.
absl::Status HasNoOrder(const Comparison& condition, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--where: ", condition.name, ": expected = or !=, as ", why, ", got ", condition.comparison));
}

absl::Status CheckState(const Comparison& condition) {
  if (!IsEquality(condition)) return HasNoOrder(condition, "states have no order");
  std::vector<std::string> names;
  for (const TrialState state : kTrialStates) names.push_back(absl::AsciiStrToLower(Name(state)));
  const std::string state = absl::AsciiStrToLower(condition.value);
  if (std::find(names.begin(), names.end(), state) != names.end()) return absl::OkStatus();
  return CannotCompare(condition, absl::StrCat("one of ", absl::StrJoin(names, ", ")), names);
}

// Of a parameter with choices. Trials may have choices that an edit has taken out of the space.
absl::Status ReadChoice(Comparison& condition, const CategoricalDomain& domain,
                        const std::vector<Trial>& trials) {
  std::vector<std::string> choices;
  bool has_number = false;
  for (const ParamValue& choice : domain.choices) {
    choices.push_back(Printable(ShowParam(choice)));
    has_number = has_number || AsNumber(choice).has_value();
  }
  if (!IsEquality(condition)) {
    if (has_number) return ReadNumber(condition);
    return HasNoOrder(
        condition, absl::StrCat("its choices (", absl::StrJoin(choices, ", "), ") have no order"));
  }
  condition.choice = ChoiceWritten(domain, condition.value);
  const bool is_comparable = has_number && ReadNumber(condition).ok();
  if (condition.choice || choices.empty() || is_comparable) return absl::OkStatus();
  const auto is_written = [&condition](const Trial& trial) {
    const auto param = trial.params.find(condition.name);
    return param != trial.params.end() &&
           ChoiceWritten(CategoricalDomain{{param->second}}, condition.value);
  };
  if (std::any_of(trials.begin(), trials.end(), is_written)) return absl::OkStatus();
  return CannotCompare(condition, absl::StrCat("one of ", absl::StrJoin(choices, ", ")), choices);
}

// Reads the condition's value as what it is compared with.
absl::Status ReadValue(Comparison& condition, const StudySpec& study,
                       const std::vector<Trial>& trials) {
  if (IsNumber(condition.name, study, trials)) return ReadNumber(condition);
  const Parameter* const parameter = study.space.Find(condition.name);
  if (parameter != nullptr) {
    return ReadChoice(condition, std::get<CategoricalDomain>(parameter->domain), trials);
  }
  if (condition.name == "state") return CheckState(condition);
  return IsEquality(condition) ? absl::OkStatus() : HasNoOrder(condition, "its values are texts");
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
  if (const double* held = std::get_if<double>(&*field)) {
    return condition.number && Compare(*held, condition.comparison, *condition.number);
  }
  // A text is neither more nor less than a number, and nothing else has an order.
  if (!IsEquality(condition)) return false;
  const bool is_state = condition.name == "state";
  const std::string value = is_state ? absl::AsciiStrToLower(condition.value) : condition.value;
  return (std::get<std::string>(*field) == value) == (condition.comparison == "=");
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
    HPO_RETURN_IF_ERROR(ReadValue(conditions.back(), study, trials));
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

}  // namespace hpo::cli
