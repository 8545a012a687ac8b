#include "cli/fleet/templates/template_text.h"

#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

bool IsOfPlaceholder(char c) {
  return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_';
}

// A placeholder's place in a line: [begin, end) with both signs.
struct Placeholder {
  size_t begin = 0;
  size_t end = 0;
  std::string name;
};

std::optional<Placeholder> NextPlaceholder(absl::string_view line, size_t from) {
  for (size_t begin = line.find('@', from); begin != absl::string_view::npos;
       begin = line.find('@', begin + 1)) {
    size_t end = begin + 1;
    while (end < line.size() && IsOfPlaceholder(line[end])) ++end;
    const bool is_whole = end > begin + 1 && end < line.size() && line[end] == '@';
    if (!is_whole) continue;
    return Placeholder{begin, end + 1, std::string(line.substr(begin + 1, end - begin - 1))};
  }
  return std::nullopt;
}

// nullopt: the line is left out.
std::optional<std::string> FillLine(absl::string_view line,
                                    const std::map<std::string, std::string>& values) {
  std::string filled;
  size_t at = 0;
  while (const std::optional<Placeholder> next = NextPlaceholder(line, at)) {
    const auto value = values.find(next->name);
    HPO_CHECK(value != values.end());
    const std::string before(line.substr(0, next->begin));
    const bool is_indented = before.find_first_not_of(' ') == std::string::npos;
    const bool is_alone = is_indented && next->end == line.size();
    if (is_alone && value->second.empty()) return std::nullopt;
    absl::StrAppend(
        &filled, line.substr(at, next->begin - at),
        is_indented ? absl::StrReplaceAll(value->second, {{"\n", "\n" + before}}) : value->second);
    at = next->end;
  }
  return absl::StrCat(filled, line.substr(at));
}

}  // namespace

std::string FillTemplate(absl::string_view text, const std::map<std::string, std::string>& values) {
  std::string filled;
  absl::string_view separator;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::optional<std::string> full = FillLine(line, values);
    if (!full) continue;
    absl::StrAppend(&filled, separator, *full);
    separator = "\n";
  }
  return filled;
}

std::string QuotedText(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hpo::cli
