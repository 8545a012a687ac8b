// Tested by tests/worker/text/data/readers_test.cc.
#include "worker/text/data/json_rows.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/json_reader.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "nlohmann/json.hpp"
#include "worker/text/data/data_file_builder.h"
#include "worker/text/data/readers.h"
#include "worker/text/files/field_names.h"
#include "worker/text/tokenizers/parts/utf8.h"

namespace hpo::text {
namespace {

using absl::string_view;

constexpr char kReplacementEscape[] = "\\ufffd";
constexpr size_t kEscapeSize = 6;  // \uXXXX
// Characters that an error shows before the place where JSON breaks.
constexpr size_t kShownBefore = 24;

// How a value ends, seen from its first character.
struct Extent {
  size_t size = string_view::npos;  // npos: the value does not end
  bool in_string = false;           // it ends inside a string
};

Extent ExtentOfValue(string_view text) {
  int64_t depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth <= 0) return {.size = at + (depth == 0 ? 1 : 0)};
    } else if (depth == 0 && (c == ',' || absl::ascii_isspace(static_cast<unsigned char>(c)))) {
      return {.size = at};
    }
  }
  return {.size = depth == 0 && !in_string ? text.size() : string_view::npos,
          .in_string = in_string};
}

// A line that begins an object and leaves it open: the first line of one that goes over several.
bool LeavesObjectOpen(string_view line) {
  if (!absl::StartsWith(line, "{")) return false;
  const Extent extent = ExtentOfValue(line);
  return extent.size == string_view::npos && !extent.in_string;
}

// The four digits of an escape \uXXXX at the beginning of `text`.
std::optional<uint32_t> UnicodeEscape(string_view text) {
  uint32_t unit = 0;
  if (text.size() < kEscapeSize || text[0] != '\\' || text[1] != 'u' ||
      !absl::SimpleHexAtoi(text.substr(2, 4), &unit) || !absl::ascii_isxdigit(text[2])) {
    return std::nullopt;
  }
  return unit;
}

bool IsHighHalf(uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowHalf(uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// The text with U+FFFD for escapes that are no character; nullopt where all are.
std::optional<std::string> RepairEscapes(const JsonRowText& row, const std::string& origin,
                                         ReplacedCharacters& replaced) {
  const string_view text = row.text;
  if (!absl::StrContains(text, "\\u")) return std::nullopt;
  std::string repaired;
  size_t done = 0;
  for (size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const std::optional<uint32_t> unit = UnicodeEscape(text.substr(at));
    if (!unit.has_value()) {
      at += 2;
      continue;
    }
    const string_view after = text.substr(at + kEscapeSize);
    if (IsHighHalf(*unit) && IsLowHalf(UnicodeEscape(after).value_or(0))) {
      at += 2 * kEscapeSize;
      continue;
    }
    if (*unit == 0 || IsHighHalf(*unit) || IsLowHalf(*unit)) {
      replaced.Add(origin, PlaceOf(text, at, row.begin),
                   absl::StrCat("the escape ", text.substr(at, kEscapeSize),
                                *unit == 0 ? ", a NUL," : ", half of a character,"));
      absl::StrAppend(&repaired, text.substr(done, at - done), kReplacementEscape);
      done = at + kEscapeSize;
    }
    at += kEscapeSize;
  }
  if (done == 0) return std::nullopt;
  absl::StrAppend(&repaired, text.substr(done));
  return repaired;
}

bool IsComment(string_view row) {
  return absl::StartsWith(row, "#") || absl::StartsWith(row, "//") || absl::StartsWith(row, "/*");
}

// The cause where a row begins with something else than JSON; empty: it begins as JSON does.
std::string CauseOfBeginning(const JsonRowText& row, const std::string& origin) {
  if (IsComment(row.text)) return "a comment, which JSON does not have; remove it";
  const bool begins = absl::StartsWith(row.text, "{") || absl::StartsWith(row.text, "[");
  if (begins) return "";
  const string_view line = row.text.substr(0, row.text.find('\n'));
  const bool header = line.find_first_of(",;\t|") != string_view::npos &&
                      line.find_first_of("{}[]()<>") == string_view::npos;
  if (row.begin.line == 1 && header) {
    const bool is_csv = DataFormatOf(origin).value_or(DataFormat::kJson) == DataFormat::kCsv;
    return absl::StrCat(Quoted(line), ", which looks like the header row of CSV; ",
                        is_csv ? "this task takes JSON: write the rows as JSON lines"
                               : "rename the file so that it ends in .csv");
  }
  if (absl::StartsWith(row.text, "\"") || absl::StartsWith(row.text, ",")) return "";
  return absl::StrCat(Quoted(line), "; write each row as {\"text\": ..., \"label\": ...}");
}

// The cause inside an object, by the character where JSON breaks and what stands before it.
std::string CauseInside(string_view at, string_view before) {
  const char last = before.empty() ? '\0' : before.back();
  const string_view character = at.substr(0, CharacterSize(at));
  if (absl::StartsWith(at, "\u201c") || absl::StartsWith(at, "\u201d")) {
    return absl::StrCat("a typographic quote, ", character, "; JSON has straight ones, \"");
  }
  if (IsComment(at)) return "a comment, which JSON does not have; remove it";
  if (last == '\\') {
    return absl::StrCat("the escape \\", character,
                        ", which JSON does not have; write a backslash as two");
  }
  if (absl::ascii_isalpha(at[0]) && (last == '{' || last == ',')) {
    return "a name without quotes; JSON has names in double quotes";
  }
  if (at[0] == '"' && last != '{' && last != ',' && last != ':' && last != '[') {
    return "a quote where ',' or ':' is missing; in a text, write a quote as \\\"";
  }
  if (absl::ascii_isalpha(at[0]) && last == '"') {
    return "text after a closing quote; in a text, write a quote as \\\"";
  }
  if (at[0] == ',' && last == '}') {
    return "a comma after the object; remove it: each line is one object";
  }
  return absl::StrCat("an unexpected '", character, "'");
}

// What is wrong at `byte` of a text that begins as JSON does, and what to do.
std::string CauseOf(string_view text, size_t byte) {
  const string_view at = text.substr(byte);
  const string_view before = absl::StripTrailingAsciiWhitespace(text.substr(0, byte));
  if (at.empty()) return "the text ends inside the object; write the whole object in one line";
  const auto c = static_cast<unsigned char>(at[0]);
  if (c < 0x20) return "a control character inside a string; write it as an escape such as \\n";
  if (c == '\'') return "a single quote; JSON has double quotes, as json.dumps writes them";
  for (const char* const word : {"NaN", "nan", "Infinity", "-Infinity", "inf", "-inf", "undefined",
                                 "None", "True", "False"}) {
    if (!absl::StartsWith(at, word)) continue;
    return absl::StrCat(word, ", which JSON does not have; write null, true or false");
  }
  if ((c == '}' || c == ']') && absl::EndsWith(before, ",")) {
    return "a comma before the end; remove it";
  }
  if (c == '{' && absl::EndsWith(before, "}")) {
    return "a second object in the row; write each into a line of its own";
  }
  return CauseInside(at, before);
}

// Where the string begins that the quote at `at` ends; `at` itself where it begins one.
size_t BeginOfString(string_view text, size_t at) {
  size_t begin = at;
  bool in_string = false;
  for (size_t i = 0; i < at; ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
      if (in_string) begin = i;
    }
  }
  return in_string ? begin : at;
}

// Where nlohmann/json stopped, as the first byte that does not belong: it counts those it has read,
// reads a string to its end, and a word that it does not know, such as NaN, up to its first wrong
// letter.
size_t BreakOf(string_view text, size_t bytes_read) {
  size_t at = std::min(bytes_read == 0 ? 0 : bytes_read - 1, text.size());
  if (at >= text.size()) return text.size();
  at = CharacterBegin(text, at);
  if (text[at] == '"') return BeginOfString(text, at);
  while (at > 0 && absl::ascii_isalpha(text[at]) && absl::ascii_isalpha(text[at - 1])) --at;
  if (at > 0 && text[at - 1] == '-' && absl::ascii_isalpha(text[at])) --at;
  return at;
}

absl::Status BrokenJson(const JsonRowText& row, size_t bytes_read, const std::string& origin) {
  std::string cause = CauseOfBeginning(row, origin);
  const size_t at = cause.empty() ? BreakOf(row.text, bytes_read) : 0;
  if (cause.empty()) cause = CauseOf(row.text, at);
  size_t shown = at - std::min(at, kShownBefore);
  if (shown < row.text.size()) shown = CharacterBegin(row.text, shown);
  const string_view before = row.text.substr(shown, at - shown);
  std::string message = absl::StrCat("expected a JSON object, got broken JSON: ", cause);
  if (!before.empty()) absl::StrAppend(&message, " (after: ", before, ")");
  return DataError(origin, PlaceOf(row.text, at, row.begin), message);
}

}  // namespace

JsonRowSplitter::JsonRowSplitter(string_view content, const std::string& origin)
    : rest_(content), origin_(origin) {
  TakeSpace();
  const string_view line = absl::StripAsciiWhitespace(rest_.substr(0, rest_.find_first_of("\r\n")));
  if (absl::StartsWith(rest_, "[")) {
    form_ = Form::kArray;
    Take(1);
  } else if (LeavesObjectOpen(line)) {
    form_ = Form::kObjects;
  }
}

void JsonRowSplitter::Take(size_t size) {
  place_ = PlaceOf(rest_, size, place_);
  rest_.remove_prefix(size);
}

void JsonRowSplitter::TakeSpace() {
  // A byte order mark where files were put together; the separator of JSON text sequences.
  constexpr string_view kOtherSpaces[] = {"\uFEFF", "\x1E"};
  string_view after = rest_;
  size_t size = after.size() + 1;
  while (after.size() < size) {
    size = after.size();
    after = absl::StripLeadingAsciiWhitespace(after);
    for (const string_view space : kOtherSpaces) absl::ConsumePrefix(&after, space);
  }
  Take(rest_.size() - after.size());
}

absl::Status JsonRowSplitter::Unexpected(string_view expected) const {
  const string_view got = rest_.substr(0, rest_.empty() ? 0 : CharacterSize(rest_));
  return DataError(origin_, place_,
                   absl::StrCat("expected ", expected, ", got ",
                                got.empty() ? "the end of the file" : absl::StrCat("'", got, "'")));
}

absl::StatusOr<bool> JsonRowSplitter::Next(JsonRowText& row) {
  HPO_ASSIGN_OR_RETURN(const bool more, form_ == Form::kLines ? NextLine(row) : NextValue(row));
  if (more) HPO_RETURN_IF_ERROR(CheckRecordSize(row.text, origin_, row.begin.line));
  return more;
}

absl::StatusOr<bool> JsonRowSplitter::NextLine(JsonRowText& row) {
  TakeSpace();
  if (rest_.empty()) return false;
  row.begin = place_;
  row.text = rest_.substr(0, rest_.find_first_of("\r\n"));
  Take(row.text.size());
  row.text = absl::StripTrailingAsciiWhitespace(row.text);
  return true;
}

absl::Status JsonRowSplitter::ReadComma() {
  if (first_ || form_ != Form::kArray) return absl::OkStatus();
  if (!absl::StartsWith(rest_, ",")) return Unexpected("',' or ']' after a row of the array");
  Take(1);
  TakeSpace();
  if (absl::StartsWith(rest_, "]")) {
    return Unexpected("a row of the array after ',' (remove the comma after the last row)");
  }
  return absl::OkStatus();
}

absl::Status JsonRowSplitter::CheckEnd() const {
  if (rest_.empty()) return absl::OkStatus();
  return Unexpected(
      "the end of the file after the array of rows (write one array, or one object a "
      "line)");
}

absl::StatusOr<bool> JsonRowSplitter::NextValue(JsonRowText& row) {
  TakeSpace();
  if (ended_ || (form_ == Form::kObjects && rest_.empty())) return false;
  if (form_ == Form::kArray && absl::StartsWith(rest_, "]")) {
    ended_ = true;
    Take(1);
    TakeSpace();
    HPO_RETURN_IF_ERROR(CheckEnd());
    return false;
  }
  HPO_RETURN_IF_ERROR(ReadComma());
  first_ = false;
  if (rest_.empty()) return Unexpected("']' at the end of the array");
  const Extent extent = ExtentOfValue(rest_);
  if (extent.size == string_view::npos) {
    return DataError(origin_, place_,
                     "expected a JSON object, got one that has no end: a quote or a '}' is missing "
                     "in it or after it");
  }
  row.text = rest_.substr(0, std::max<size_t>(extent.size, 1));
  row.begin = place_;
  Take(row.text.size());
  return true;
}

absl::StatusOr<nlohmann::json> ParseJsonRow(const JsonRowText& row, const std::string& origin,
                                            ReplacedCharacters& replaced) {
  std::set<std::string> keys;
  std::optional<std::string> repeated;
  const auto note_keys = [&](int depth, nlohmann::json::parse_event_t event,
                             nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 &&
        !keys.insert(parsed.get<std::string>()).second) {
      repeated = parsed.get<std::string>();
    }
    return true;
  };
  const std::optional<std::string> repaired = RepairEscapes(row, origin, replaced);
  const string_view text = repaired.has_value() ? *repaired : row.text;
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(text.begin(), text.end(), note_keys);
  } catch (const nlohmann::json::parse_error& error) {
    return BrokenJson({.text = text, .begin = row.begin}, error.byte, origin);
  } catch (const nlohmann::json::out_of_range&) {
    return DataError(origin, row.begin.line,
                     "expected a JSON object, got a number out of range; write it as a string, or "
                     "remove it");
  }
  if (!object.is_object()) {
    return DataError(origin, row.begin.line,
                     absl::StrCat("expected a JSON object, got ", DescribeJson(object),
                                  "; write each row as {\"text\": ..., \"label\": ...}"));
  }
  if (repeated.has_value()) {
    return DataError(origin, row.begin.line, absl::StrCat(*repeated, ": expected each field once"));
  }
  return object;
}

const nlohmann::json* FindField(const nlohmann::json& object, string_view name) {
  auto found = object.find(std::string(name));
  if (found == object.end()) {
    found = object.begin();
    while (found != object.end() &&
           !absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(found.key()), name)) {
      ++found;
    }
  }
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string FieldNames(const nlohmann::json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) {
    names.push_back(absl::StrCat(Quoted(name), value.is_null() ? " (null)" : ""));
  }
  return names.empty() ? "no fields" : FirstNames(names);
}

absl::StatusOr<std::string> RowText(const nlohmann::json& object) {
  for (const string_view name : kTextNames) {
    const nlohmann::json* const found = FindField(object, name);
    if (found == nullptr) continue;
    if (found->is_string()) return found->get<std::string>();
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": expected a string, got ", DescribeJson(*found),
        found->is_structured()
            ? "; write one object for each row: pandas' to_json(NEW, orient='records', lines=True)"
            : "; write the text in quotes"));
  }
  for (const auto& [name, value] : object.items()) {
    for (const string_view known : kTextNames) {
      if (!value.is_null() || !absl::EqualsIgnoreCase(name, known)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(known, ": expected a string, got null; give the row a text, or remove it"));
    }
  }
  for (const auto& [name, value] : object.items()) {
    if (!value.is_array() || value.empty() || !value.front().is_object()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a field ", kTextNamesShown, ", got ", FieldNames(object), "; write the rows in ",
        Quoted(name), " alone into the file, and name the field of the text 'text'"));
  }
  return absl::InvalidArgumentError(absl::StrCat("expected a field ", kTextNamesShown, ", got ",
                                                 FieldNames(object),
                                                 "; name the field of the text 'text'"));
}

}  // namespace hpo::text
