#include "common/selection/written_choice.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace hpo {
namespace {

// Whether `text` is another way to write `choice`.
bool Writes(const std::string& text, const ParamValue& choice) {
  double number = 0.0;
  if (const bool* const truth = std::get_if<bool>(&choice)) {
    return absl::EqualsIgnoreCase(text, *truth ? "true" : "false");
  }
  if (std::holds_alternative<Null>(choice)) {
    return absl::EqualsIgnoreCase(text, "null") || text == "None" || text == "~";
  }
  if (!absl::SimpleAtod(text, &number)) return false;
  if (const auto* const whole = std::get_if<int64_t>(&choice)) {
    return number == static_cast<double>(*whole);
  }
  const auto* const real = std::get_if<double>(&choice);
  return real != nullptr && number == *real;
}

// What stands in double quotes; else `text`.
absl::string_view Unquoted(absl::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::optional<ParamValue> ChoiceWritten(const CategoricalDomain& domain, const std::string& text) {
  // A text may read as another choice: then that one is meant, unless the text is in quotes.
  for (const ParamValue& choice : domain.choices) {
    if (ShowParam(choice) == text) return choice;
  }
  for (const ParamValue& choice : domain.choices) {
    if (Writes(text, choice)) return choice;
  }
  for (const ParamValue& choice : domain.choices) {
    if (FormatParam(choice) == text || ShowParam(choice) == Unquoted(text)) return choice;
  }
  return std::nullopt;
}

}  // namespace hpo
