#include "common/interop/optuna/optuna_distribution.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"

namespace hpo {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kCategorical = "CategoricalDistribution";
constexpr absl::string_view kRanges[] = {
    "FloatDistribution",           "IntDistribution",        "UniformDistribution",
    "LogUniformDistribution",      "IntUniformDistribution", "IntLogUniformDistribution",
    "DiscreteUniformDistribution",
};
constexpr absl::string_view kNotFinite[] = {"NaN", "Infinity", "-Infinity"};

// Where the string that begins at `begin` ends, behind its quote.
size_t EndOfString(absl::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

absl::Status CheckRange(const std::string& name, const Json& attributes, bool log) {
  const Json low = attributes.value("low", Json());
  const Json high = attributes.value("high", Json());
  if (!low.is_number() || !high.is_number() || low.get<double>() > high.get<double>()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": expected numbers low <= high, got ",
                                                   DescribeJson(low), " and ", DescribeJson(high)));
  }
  if (log && !(low.get<double>() > 0.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected low > 0 on a log scale, got ", DescribeJson(low)));
  }
  const Json step = attributes.value("step", Json());
  const bool good = step.is_null() || (step.is_number() && step.get<double>() > 0.0);
  const bool one = step.is_null() || (step.is_number() && step.get<double>() == 1.0);
  if (good && (!log || one)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": expected a step > 0, and none on a log scale, got ", DescribeJson(step)));
}

}  // namespace

absl::StatusOr<Json> ParsePythonJson(absl::string_view text) {
  std::string strict;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') end = EndOfString(text, at);
    const absl::string_view* const found = std::find_if(
        std::begin(kNotFinite), std::end(kNotFinite),
        [&](absl::string_view number) { return absl::StartsWith(text.substr(at), number); });
    if (found != std::end(kNotFinite)) {
      absl::StrAppend(&strict, "{\"\":\"", *found, "\"}");
      end = at + found->size();
    } else {
      absl::StrAppend(&strict, text.substr(at, end - at));
    }
    at = end;
  }
  return ParseJson(strict);
}

bool IsTextChoice(const Json& choice) { return choice.is_structured(); }

absl::StatusOr<ParamValue> OptunaChoice(const Json& choice) {
  if (!IsTextChoice(choice)) return ParamFromJson(choice);
  std::string text = DumpJson(choice);
  for (const absl::string_view number : kNotFinite) {
    text = absl::StrReplaceAll(text, {{absl::StrCat("{\"\":\"", number, "\"}"), number}});
  }
  return text;
}

absl::StatusOr<OptunaDistribution> ParseOptunaDistribution(absl::string_view text) {
  HPO_ASSIGN_OR_RETURN(const Json json, ParsePythonJson(text));
  const bool is_known = json.is_object() && json.value("name", Json()).is_string() &&
                        json.value("attributes", Json()).is_object();
  OptunaDistribution distribution;
  if (is_known) distribution.name = json["name"].get<std::string>();
  if (distribution.name == kCategorical) {
    distribution.choices = json["attributes"].value("choices", Json());
    if (distribution.choices.is_array() && !distribution.choices.empty()) return distribution;
    return absl::InvalidArgumentError(absl::StrCat(distribution.name, ": expected choices, got ",
                                                   DescribeJson(distribution.choices)));
  }
  if (std::find(std::begin(kRanges), std::end(kRanges), distribution.name) == std::end(kRanges)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a FloatDistribution, an IntDistribution or a "
                     "CategoricalDistribution with its attributes, got ",
                     DescribeJson(json)));
  }
  const Json log = json["attributes"].value("log", Json(false));
  if (!log.is_boolean()) {
    return absl::InvalidArgumentError(
        absl::StrCat(distribution.name, ": log: expected true or false, got ", DescribeJson(log)));
  }
  distribution.log = log.get<bool>();
  HPO_RETURN_IF_ERROR(CheckRange(distribution.name, json["attributes"], distribution.log));
  return distribution;
}

absl::Status CheckOptunaValue(const OptunaDistribution& distribution, double value) {
  if (!std::isfinite(value)) {
    return absl::InvalidArgumentError(absl::StrCat("expected a finite number, got ", value));
  }
  if (distribution.choices.is_null()) return absl::OkStatus();
  const auto count = static_cast<double>(distribution.choices.size());
  if (value >= 0.0 && value < count && value == std::floor(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected the index of one of ", count, " choices, got ", value));
}

absl::Status CheckCompatible(const OptunaDistribution& stored, const OptunaDistribution& given) {
  if (stored.name != given.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a ", stored.name, " as earlier trials have, got a ", given.name));
  }
  if (stored.log != given.log) {
    return absl::InvalidArgumentError(absl::StrCat("expected log = ", stored.log ? "True" : "False",
                                                   " as earlier trials have, got the other"));
  }
  if (stored.choices == given.choices) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected the choices that earlier trials have, ",
                                                 DescribeJson(stored.choices), ", got ",
                                                 DescribeJson(given.choices)));
}

}  // namespace hpo
