#include "worker/command/param_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"

namespace hpo::command {
namespace {

std::string VariableName(const std::string& name) {
  std::string variable = "HPO_PARAM_";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    variable += absl::ascii_isalnum(byte) ? static_cast<char>(absl::ascii_toupper(byte)) : '_';
  }
  return variable;
}

// YAML 1.1 takes 1e-05 for a text: there a real number has a point.
std::string ScalarText(const ParamValue& value) {
  std::string text = DumpJson(ParamToJson(value));
  const size_t exponent = text.find('e');
  const bool real = std::holds_alternative<double>(value);
  if (real && exponent != std::string::npos && text.find('.') == std::string::npos) {
    text.insert(exponent, ".0");
  }
  return text;
}

struct Level {
  std::map<std::string, std::string> values;
  std::map<std::string, Level> levels;
};

std::string LevelText(const Level& level, const std::string& indent) {
  const std::string inner = indent + "  ";
  std::vector<std::string> lines;
  for (const auto& [name, value] : level.values) {
    lines.push_back(absl::StrCat(inner, DumpJson(name), ": ", value));
  }
  for (const auto& [name, below] : level.levels) {
    lines.push_back(absl::StrCat(inner, DumpJson(name), ": ", LevelText(below, inner)));
  }
  if (lines.empty()) return "{}";
  return absl::StrCat("{\n", absl::StrJoin(lines, ",\n"), "\n", indent, "}");
}

// The levels of a name; one where a part of it is empty, or its beginning another parameter's name.
std::vector<std::string> LevelsOf(const std::string& name, const ParamMap& params) {
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  for (size_t at = name.find('.'); at != std::string::npos; at = name.find('.', at + 1)) {
    if (params.contains(name.substr(0, at))) return {name};
  }
  const bool whole = std::find(parts.begin(), parts.end(), "") == parts.end();
  return whole ? parts : std::vector<std::string>{name};
}

// Neither reads as another value (True, 1_000), nor has a character of the grammar's own.
bool IsPlainForHydra(const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  if (ShowParam(lower) != lower || !absl::ascii_isalpha(static_cast<unsigned char>(lower[0]))) {
    return false;
  }
  return std::all_of(lower.begin(), lower.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_./", c);
  });
}

// Hydra takes a backslash for itself, but before a quote.
std::string HydraQuoted(absl::string_view text) {
  std::string quoted = "'";
  std::string backslashes;
  for (const char c : text) {
    if (c == '\'') absl::StrAppend(&quoted, backslashes, "\\");
    backslashes = c == '\\' ? backslashes + c : "";
    quoted += c;
  }
  return absl::StrCat(quoted, backslashes, "'");
}

}  // namespace

std::string ValueText(const ParamValue& value) {
  const auto* const number = std::get_if<double>(&value);
  if (number == nullptr) return FormatParam(value);
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), *number);
  return std::string(text.data(), end.ptr);
}

std::string OptionText(const std::string& name, const ParamValue& value) {
  if (std::holds_alternative<Null>(value)) return "";
  if (const bool* const flag = std::get_if<bool>(&value)) return *flag ? "--" + name : "";
  return absl::StrCat("--", name, "=", ValueText(value));
}

std::string OverrideText(const std::string& name, const ParamValue& value) {
  std::string text = ValueText(value);
  if (const auto* const words = std::get_if<std::string>(&value)) {
    if (!IsPlainForHydra(*words)) text = HydraQuoted(*words);
  }
  return absl::StrCat(name, "=", text);
}

std::map<std::string, std::string> ParamVariables(const ParamMap& params) {
  std::string all = DumpJson(ParamsToJson(params));
  if (all.size() > kMostVariableBytes) return {};
  std::map<std::string, std::string> variables = {{"HPO_PARAMS", std::move(all)}};
  std::set<std::string> seen;
  for (const auto& [name, value] : params) {
    const std::string variable = VariableName(name);
    const bool alone = seen.insert(variable).second;
    if (!alone) variables.erase(variable);
    // The kernel's strings end at a zero byte.
    const std::string text = ValueText(value);
    const bool fits = text.find('\0') == std::string::npos;
    if (alone && fits && !std::holds_alternative<Null>(value)) variables[variable] = text;
  }
  return variables;
}

std::string ConfigText(const ParamMap& params) {
  Level root;
  for (const auto& [name, value] : params) {
    const std::vector<std::string> parts = LevelsOf(name, params);
    Level* level = &root;
    for (size_t i = 0; i + 1 < parts.size(); ++i) level = &level->levels[parts[i]];
    level->values[parts.back()] = ScalarText(value);
  }
  return LevelText(root, "") + "\n";
}

}  // namespace hpo::command
