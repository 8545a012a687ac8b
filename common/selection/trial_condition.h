// A condition on trials, "NAME=VALUE" (also !=, <, <=, > and >=). NAME is a parameter, a metric, or
// number, state, value or time (in seconds). A choice is written as for ChoiceWritten. Only numbers
// have an order: <, <=, > and >= do not hold for a trial whose NAME is null or a text. Of a trial
// that has no NAME no condition holds. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/space/params.h"
#include "common/study/study.h"

namespace hpo {

// The fields that every trial may have beside parameters and metrics.
inline constexpr char kNumberField[] = "number";
inline constexpr char kStateField[] = "state";  // in lower case
inline constexpr char kValueField[] = "value";
inline constexpr char kTimeField[] = "time";  // seconds from start to end

// What the trials at hand have of a field.
struct FieldFacts {
  bool has_values = false;
  bool only_numbers = true;        // none has another value
  std::vector<ParamValue> values;  // that it has, each once; of a parameter with choices
};
using FactsOf = std::function<FieldFacts(const std::string& name)>;

struct TrialCondition {
  std::string name;
  std::string comparison;
  std::string value;
  std::optional<ParamValue> choice;  // that `value` writes, of a parameter with choices
  std::optional<double> number;      // that `value` is, where numbers are compared
};

// `option` begins what is said of an error: "--where".
//   InvalidArgument  no condition, a NAME that neither study nor trials have, a VALUE that cannot
//   be
//                    compared with NAME's (no number, no state, none of the choices), or an order
//                    of what has none: states, choices without a number, texts
absl::StatusOr<TrialCondition> ReadCondition(const std::string& word, absl::string_view option,
                                             const StudySpec& study, const FactsOf& facts);

// Whether a NAME is known.
//   InvalidArgument  neither study nor trials have it
absl::Status CheckFieldName(absl::string_view option, const std::string& name,
                            const StudySpec& study, const FactsOf& facts);

// Of a trial that has this value of the condition's field; nullopt: it has none.
bool Holds(const std::optional<ParamValue>& value, const TrialCondition& condition);

// What a field's value sorts by: numbers before texts; nullopt (none, or null): after all.
using SortedValue = std::optional<std::variant<double, std::string>>;
SortedValue SortedBy(const std::optional<ParamValue>& value);

}  // namespace hpo
