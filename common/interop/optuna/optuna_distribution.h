// Distributions as Optuna's clients state them, in JSON as Python writes it. Pure.
//
// What one client stores, all others read: a distribution that Optuna could not make again would
// end each of them, so it is refused.
// Source: optuna/distributions.py (json_to_distribution, check_distribution_compatibility).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/space/params.h"
#include "nlohmann/json.hpp"

namespace hpo {

// JSON with the NaN, Infinity and -Infinity that Python's json module writes and reads; in the
// result each is an object, which equals itself alone.
//   InvalidArgument  not JSON; names the byte where reading stopped
absl::StatusOr<nlohmann::json> ParsePythonJson(absl::string_view text);

struct OptunaDistribution {
  std::string name;  // "FloatDistribution", ...; also those that Optuna has deprecated
  bool log = false;
  nlohmann::json choices;  // null where it has none
};

// Whether a choice as ParsePythonJson gives it is no scalar of ours: a list (Python's tuple), an
// object, or a number that is not finite.
bool IsTextChoice(const nlohmann::json& choice);

// The choice as a value of ours; one of those as its JSON in Python's notation: "[64,32]", "NaN".
//   InvalidArgument  an integer beyond 64 bits
absl::StatusOr<ParamValue> OptunaChoice(const nlohmann::json& choice);

//   InvalidArgument  not JSON, or no distribution of Optuna's
absl::StatusOr<OptunaDistribution> ParseOptunaDistribution(absl::string_view text);

// Whether `value` can be a parameter's number. As with Optuna, it may lie outside a range.
//   InvalidArgument  not finite, or not the index of a choice
absl::Status CheckOptunaValue(const OptunaDistribution& distribution, double value);

// Whether trials of a study may draw a parameter from both.
//   InvalidArgument  of another kind, on another scale, or with other choices
absl::Status CheckCompatible(const OptunaDistribution& stored, const OptunaDistribution& given);

}  // namespace hpo
