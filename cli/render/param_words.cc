#include "cli/render/param_words.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/selection/written_choice.h"

namespace hpo::cli {
namespace {

// One overload a domain; nullopt where `text` is none of its values.
std::optional<ParamValue> Parse(const FloatDomain&, const std::string& text) {
  double value = 0.0;
  if (!absl::SimpleAtod(text, &value)) return std::nullopt;
  return ParamValue(value);
}

std::optional<ParamValue> Parse(const IntDomain&, const std::string& text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return std::nullopt;
  return ParamValue(value);
}

std::optional<ParamValue> Parse(const CategoricalDomain& domain, const std::string& text) {
  return ChoiceWritten(domain, text);
}

std::vector<std::string> ParameterNames(const SearchSpace& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters) names.push_back(parameter.name);
  return names;
}

std::string Suggestion(const Domain& domain, const std::string& text) {
  const CategoricalDomain* categorical = std::get_if<CategoricalDomain>(&domain);
  if (categorical == nullptr) return "";
  std::vector<std::string> choices;
  for (const ParamValue& choice : categorical->choices) choices.push_back(ShowParam(choice));
  return DidYouMean(text, choices);
}

absl::StatusOr<ParamValue> ParseValue(const Parameter& parameter, const std::string& text) {
  std::optional<ParamValue> value =
      std::visit([&text](const auto& domain) { return Parse(domain, text); }, parameter.domain);
  if (value) return *std::move(value);
  return absl::InvalidArgumentError(absl::StrCat("parameter ", parameter.name, ": expected ",
                                                 FormatDomain(parameter.domain), ", got '", text,
                                                 "'", Suggestion(parameter.domain, text)));
}

}  // namespace

absl::StatusOr<ParamMap> ParseParamWords(const std::vector<std::string>& words,
                                         const SearchSpace& space, absl::string_view unknown) {
  ParamMap params;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("expected name=value, got '", word, "'"));
    }
    const std::string name = word.substr(0, equals);
    const Parameter* parameter = space.Find(name);
    if (parameter == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(unknown, " '", name, "'", DidYouMean(name, ParameterNames(space))));
    }
    HPO_ASSIGN_OR_RETURN(ParamValue value, ParseValue(*parameter, word.substr(equals + 1)));
    if (!params.emplace(name, std::move(value)).second) {
      return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is given twice"));
    }
  }
  return params;
}

}  // namespace hpo::cli
