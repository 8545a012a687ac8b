// A condition on trials, "NAME=VALUE" (also !=, <, <=, > and >=). NAME is a parameter, a metric
// (also "param:NAME" and "metric:NAME"), or a field of the table. A choice is written as for
// ChoiceWritten; a word (a state) in any case; started and ended as a date (2026-11-29), a time
// (2026-11-29T15:04:05Z; without an offset it is UTC), or in seconds since 1970. Only numbers have
// an order: <, <=, > and >= do not hold for a trial whose NAME is null or a text. No condition
// holds for a trial that has no NAME. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/space/params.h"
#include "common/study/study.h"
#include "server/table/trial_columns.h"

namespace hpo::server {

struct TrialCondition {
  std::string name;
  std::string comparison;
  std::string value;
  std::optional<ParamValue> choice;  // that `value` writes, of a parameter with choices
  std::optional<double> number;      // that `value` is, where numbers are compared
  bool ignores_case = false;         // `value` is a word
};

//   InvalidArgument  no condition, a NAME that neither study nor trials have, a VALUE that cannot
//                    be compared with NAME's (no number, no state, none of the choices), or an
//                    order of what has none: words, choices without a number, texts
absl::StatusOr<TrialCondition> ReadCondition(const std::string& word, const StudySpec& study,
                                             const TrialColumns& columns);

// Whether a NAME is known. `field`: of the request, which begins what is said of an error.
//   InvalidArgument  neither study nor trials have it
absl::Status CheckFieldName(absl::string_view field, const std::string& name,
                            const StudySpec& study, const TrialColumns& columns);

// Of a trial that has this value of the condition's field; nullopt: it has none.
bool Holds(const std::optional<ParamValue>& value, const TrialCondition& condition);

}  // namespace hpo::server
