#include "cli/commands/trials/trial_selection.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "cli/client/terminal.h"
#include "cli/render/wording.h"
#include "common/base/status.h"
#include "common/selection/trial_condition.h"

namespace hpo::cli {
namespace {

std::optional<ParamValue> Number(const std::optional<double>& number) {
  return number ? std::optional<ParamValue>(*number) : std::nullopt;
}

std::optional<ParamValue> FieldOf(const Trial& trial, const std::string& name) {
  if (const auto param = trial.params.find(name); param != trial.params.end()) {
    return param->second;
  }
  if (name == kNumberField) return static_cast<double>(trial.id.number.value);
  if (name == kStateField) return ParamValue(absl::AsciiStrToLower(Name(trial.state)));
  if (name == kValueField) return Number(trial.value);
  if (name != kTimeField) return Number(MetricOf(trial, name));
  const bool ran = trial.started != absl::InfinitePast() && trial.ended != absl::InfinitePast();
  if (!ran) return std::nullopt;
  return absl::ToDoubleSeconds(trial.ended - trial.started);
}

FieldFacts FactsOfTrials(const std::vector<Trial>& trials, const std::string& name) {
  FieldFacts facts;
  for (const Trial& trial : trials) {
    const std::optional<ParamValue> value = FieldOf(trial, name);
    if (!SortedBy(value) && !trial.params.contains(name)) continue;
    facts.has_values = facts.has_values || SortedBy(value).has_value();
    facts.only_numbers = facts.only_numbers && AsNumber(*value).has_value();
    const bool is_new =
        std::find(facts.values.begin(), facts.values.end(), *value) == facts.values.end();
    if (trial.params.contains(name) && is_new && !AsNumber(*value)) facts.values.push_back(*value);
  }
  return facts;
}

void Sort(std::vector<Trial>& trials, const std::string& name, bool largest_first) {
  std::stable_sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
    const SortedValue left = SortedBy(FieldOf(a, name));
    const SortedValue right = SortedBy(FieldOf(b, name));
    if (!left || !right) return left.has_value() && !right.has_value();
    return largest_first ? *right < *left : *left < *right;
  });
}

// Choices and names are from elsewhere.
absl::Status ForTerminal(const absl::Status& status) {
  return absl::Status(status.code(), Printable(status.message()));
}

}  // namespace

absl::StatusOr<std::vector<Trial>> SelectTrials(std::vector<Trial> trials, const StudySpec& study,
                                                const std::vector<std::string>& where,
                                                const std::string& sort) {
  const TrialFields fields = {
      .names = {kNumberField, kStateField, kValueField, kTimeField},
      .facts = [&trials](const std::string& name) { return FactsOfTrials(trials, name); }};
  absl::string_view sorted_by = sort;
  const bool largest_first = absl::ConsumePrefix(&sorted_by, "-");
  const std::string name(sorted_by);
  if (!sort.empty()) {
    HPO_RETURN_IF_ERROR(ForTerminal(CheckFieldName("--sort", name, study, fields)));
  }
  std::vector<TrialCondition> conditions;
  for (const std::string& word : where) {
    absl::StatusOr<TrialCondition> condition = ReadCondition(word, "--where", study, fields);
    if (!condition.ok()) return ForTerminal(condition.status());
    conditions.push_back(*std::move(condition));
  }
  std::erase_if(trials, [&conditions](const Trial& trial) {
    return !std::all_of(conditions.begin(), conditions.end(), [&](const TrialCondition& one) {
      return Holds(FieldOf(trial, one.name), one);
    });
  });
  if (!sort.empty()) Sort(trials, name, largest_first);
  return trials;
}

bool HasTags(const Attributes& attributes, const std::vector<std::string>& tags) {
  return std::all_of(tags.begin(), tags.end(),
                     [&](const std::string& tag) { return HasTag(attributes, tag); });
}

}  // namespace hpo::cli
