// Tested by tests/server/table/trial_condition_test.cc.
#include "server/table/trial_condition.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/one_of.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/selection/written_choice.h"

namespace hpo::server {
namespace {

constexpr char kWhere[] = "where";  // of the request

// The formats of a point in time that is not written in seconds since 1970.
constexpr const char* kTimeFormats[] = {absl::RFC3339_full, "%Y-%m-%dT%H:%M:%E*S",
                                        "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d"};

bool IsPointInTime(absl::string_view name) { return name == "started" || name == "ended"; }

// nullopt: none of kTimeFormats.
std::optional<double> SecondsWritten(const std::string& text) {
  for (const char* const format : kTimeFormats) {
    absl::Time time;
    if (!absl::ParseTime(format, text, &time, nullptr)) continue;
    return absl::ToDoubleSeconds(time - absl::UnixEpoch());
  }
  return std::nullopt;
}

// The parameter that NAME means, which hides a field of its name; nullptr: none.
const Parameter* ParameterOf(const StudySpec& study, absl::string_view name) {
  absl::ConsumePrefix(&name, "param:");
  return study.space.Find(std::string(name));
}

absl::StatusOr<TrialCondition> Parse(const std::string& word) {
  const size_t at = word.find_first_of("!<>=");
  if (at != std::string::npos && at > 0) {
    for (const char* comparison : {"!=", "<=", ">=", "=", "<", ">"}) {
      absl::string_view rest = absl::string_view(word).substr(at);
      if (!absl::ConsumePrefix(&rest, comparison)) continue;
      return TrialCondition{.name = std::string(absl::StripAsciiWhitespace(word.substr(0, at))),
                            .comparison = comparison,
                            .value = std::string(absl::StripAsciiWhitespace(rest)),
                            .choice = {},
                            .number = {},
                            .ignores_case = false};
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      kWhere, ": expected NAME=VALUE, or with !=, <, <=, > or >= between, got '", word, "'"));
}

bool Compare(double left, const std::string& comparison, double right) {
  if (comparison == "=") return left == right;
  if (comparison == "!=") return left != right;
  if (comparison == "<") return left < right;
  if (comparison == "<=") return left <= right;
  return comparison == ">" ? left > right : left >= right;
}

bool IsEquality(const TrialCondition& condition) {
  return condition.comparison == "=" || condition.comparison == "!=";
}

// Reads the value of one condition.
class ValueReader {
 public:
  ValueReader(const StudySpec& study, const FieldFacts& facts, TrialCondition& condition)
      : parameter_(ParameterOf(study, condition.name)), facts_(facts), condition_(condition) {}

  // As what it is compared with.
  absl::Status Read() {
    if (parameter_ != nullptr) {
      const auto* const choices = std::get_if<CategoricalDomain>(&parameter_->domain);
      return choices == nullptr ? ReadNumber() : ReadChoice(*choices);
    }
    if (!facts_.words.empty()) return ReadWord();
    if (facts_.only_numbers) return ReadNumber();
    return IsEquality(condition_) ? absl::OkStatus() : HasNoOrder("its values are texts");
  }

 private:
  absl::Status CannotCompare(absl::string_view expected,
                             const std::vector<std::string>& known = {}) const {
    return absl::InvalidArgumentError(absl::StrCat(kWhere, ": ", condition_.name, ": expected ",
                                                   expected, ", got '", condition_.value, "'",
                                                   DidYouMean(condition_.value, known)));
  }

  absl::Status ReadNumber() {
    double number = 0.0;
    if (absl::SimpleAtod(condition_.value, &number) && !std::isnan(number)) {
      condition_.number = number;
      return absl::OkStatus();
    }
    if (parameter_ == nullptr && IsPointInTime(condition_.name)) {
      condition_.number = SecondsWritten(condition_.value);
      if (condition_.number) return absl::OkStatus();
      return CannotCompare("a date or time, such as 2026-11-29 or 2026-11-29T15:04:05Z");
    }
    const bool is_duration = parameter_ == nullptr && condition_.name == "time";
    return CannotCompare(is_duration ? "a number of seconds" : "a number");
  }

  // `why`: what is compared has no order.
  absl::Status HasNoOrder(absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(kWhere, ": ", condition_.name,
                                                   ": expected = or !=, as ", why, ", got ",
                                                   condition_.comparison));
  }

  absl::Status ReadWord() {
    const std::vector<std::string>& words = facts_.words;
    if (!IsEquality(condition_)) {
      return HasNoOrder(condition_.name == "state" ? "states have no order"
                                                   : "its values have no order");
    }
    condition_.ignores_case = true;
    const bool is_known = std::any_of(words.begin(), words.end(), [this](const std::string& word) {
      return absl::EqualsIgnoreCase(word, condition_.value);
    });
    if (is_known) return absl::OkStatus();
    return CannotCompare(absl::StrCat("one of ", absl::StrJoin(words, ", ")), words);
  }

  // Of a parameter with choices. Trials may have choices that an edit has taken out of the space.
  absl::Status ReadChoice(const CategoricalDomain& domain) {
    std::vector<std::string> choices;
    bool has_number = false;
    for (const ParamValue& choice : domain.choices) {
      choices.push_back(ShowParam(choice));
      has_number = has_number || AsNumber(choice).has_value();
    }
    const std::string all = absl::StrJoin(choices, ", ");
    if (!IsEquality(condition_)) {
      if (has_number) return ReadNumber();
      return HasNoOrder(absl::StrCat("its choices (", all, ") have no order"));
    }
    condition_.choice = ChoiceWritten(domain, condition_.value);
    const bool is_comparable = has_number && ReadNumber().ok();
    if (condition_.choice || choices.empty() || is_comparable) return absl::OkStatus();
    const auto is_written = [this](const ParamValue& value) {
      return ChoiceWritten(CategoricalDomain{{value}}, condition_.value).has_value();
    };
    if (std::any_of(facts_.values.begin(), facts_.values.end(), is_written)) {
      return absl::OkStatus();
    }
    return CannotCompare(absl::StrCat("one of ", all), choices);
  }

  const Parameter* const parameter_;
  const FieldFacts& facts_;
  TrialCondition& condition_;
};

}  // namespace

absl::Status CheckFieldName(absl::string_view field, const std::string& name,
                            const StudySpec& study, const TrialColumns& columns) {
  const std::vector<std::string> fields(std::begin(kTableFields), std::end(kTableFields));
  std::vector<std::string> known = fields;
  const auto add = [&known](const char* prefix, const std::string& added) {
    known.push_back(added);
    known.push_back(prefix + added);
  };
  for (const Parameter& parameter : study.space.parameters) add("param:", parameter.name);
  for (const Objective& objective : study.objectives) add("metric:", objective.metric);
  const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
  if (is_known || columns.FactsOf(name).has_values) return absl::OkStatus();
  std::string hint = DidYouMean(name, known);
  if (name == "tag" || name == "tags") hint = "; for tags: hpo trial list --tag NAME";
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected a parameter, a metric, ",
                                                 OneOf(fields), ", got '", name, "'", hint));
}

absl::StatusOr<TrialCondition> ReadCondition(const std::string& word, const StudySpec& study,
                                             const TrialColumns& columns) {
  HPO_ASSIGN_OR_RETURN(TrialCondition condition, Parse(word));
  HPO_RETURN_IF_ERROR(CheckFieldName(kWhere, condition.name, study, columns));
  const FieldFacts known = columns.FactsOf(condition.name);
  HPO_RETURN_IF_ERROR(ValueReader(study, known, condition).Read());
  return condition;
}

bool Holds(const std::optional<ParamValue>& value, const TrialCondition& condition) {
  if (!value) return false;
  if (condition.choice) return (*value == *condition.choice) == (condition.comparison == "=");
  if (std::holds_alternative<Null>(*value)) return condition.comparison == "!=";
  if (const std::optional<double> number = AsNumber(*value)) {
    return condition.number && Compare(*number, condition.comparison, *condition.number);
  }
  // A text is neither more nor less than a number, and nothing else has an order.
  if (!IsEquality(condition)) return false;
  const std::string text = FormatParam(*value);
  const bool is_equal = condition.ignores_case ? absl::EqualsIgnoreCase(text, condition.value)
                                               : text == condition.value;
  return is_equal == (condition.comparison == "=");
}

}  // namespace hpo::server
