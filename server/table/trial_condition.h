// A condition on trials, "NAME=VALUE" (also !=, <, <=, > and >=). NAME is a parameter, a metric
// (also "param:NAME" and "metric:NAME"), or a field of the table. A choice is written as for
// ChoiceWritten; a word (a state) in any case; started and ended as a date (2026-11-29), a time
// (2026-11-29T15:04:05Z; without an offset it is UTC), or in seconds since 1970. Only numbers have
// an order: <, <=, > and >= do not hold for a trial whose NAME is null or a text. Of a trial that
// has no NAME no condition holds. Pure.
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

namespace hpo::server {

// What the trials at hand have of a field.
struct FieldFacts {
  bool has_values = false;
  bool only_numbers = true;        // none has another value
  std::vector<ParamValue> values;  // that it has, each once; of a parameter with choices
  std::vector<std::string> words;  // all that a field of few words may have; empty: it is none
};

struct TrialFields {
  // That every trial may have, whether or not one at hand has a value.
  std::vector<std::string> names;
  std::function<FieldFacts(const std::string& name)> facts;
};

struct TrialCondition {
  std::string name;
  std::string comparison;
  std::string value;
  std::optional<ParamValue> choice;  // that `value` writes, of a parameter with choices
  std::optional<double> number;      // that `value` is, where numbers are compared
  bool ignores_case = false;         // `value` is a word
};

// `option` begins what is said of an error: "--where".
//   InvalidArgument  no condition, a NAME that neither study nor trials have, a VALUE that cannot
//                    be compared with NAME's (no number, no state, none of the choices), or an
//                    order of what has none: words, choices without a number, texts
absl::StatusOr<TrialCondition> ReadCondition(const std::string& word, absl::string_view option,
                                             const StudySpec& study, const TrialFields& fields);

// Whether a NAME is known.
//   InvalidArgument  neither study nor trials have it
absl::Status CheckFieldName(absl::string_view option, const std::string& name,
                            const StudySpec& study, const TrialFields& fields);

// Of a trial that has this value of the condition's field; nullopt: it has none.
bool Holds(const std::optional<ParamValue>& value, const TrialCondition& condition);

// What a field's value sorts by: numbers before texts; nullopt (none, or null): after all.
using SortedValue = std::optional<std::variant<double, std::string>>;
SortedValue SortedBy(const std::optional<ParamValue>& value);

}  // namespace hpo::server
