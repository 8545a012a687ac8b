// Tested by tests/worker/text/data/readers_test.cc.
#include "worker/text/data/csv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/text/data/data_file_builder.h"
#include "worker/text/data/readers.h"
#include "worker/text/files/field_names.h"
#include "worker/text/files/text_encoding.h"
#include "worker/text/files/text_place.h"

namespace hpo::text {
namespace {

constexpr size_t kNoColumn = static_cast<size_t>(-1);
constexpr char kQuoteTwice[] = "write a quote that belongs to the text as two, in a quoted field";

// Where the fields of a row stand.
struct Columns {
  size_t count = 0;
  size_t text = kNoColumn;
  size_t pair = kNoColumn;
  size_t label = kNoColumn;
  size_t labels = kNoColumn;
  std::vector<size_t> numbers;
};

// "the columns 'text' (or ...) and one of 'label' and 'labels'".
std::string ExpectedColumns(const RowTargets& targets) {
  switch (targets.kind) {
    case RowTargets::Kind::kLabels:
      return absl::StrCat("the columns ", kTextNamesShown, " and one of 'label' and 'labels'");
    case RowTargets::Kind::kNumbers:
      return absl::StrCat("the columns ", kTextNamesShown, ", '",
                          absl::StrJoin(targets.numbers.begin(), targets.numbers.end() - 1, "', '"),
                          targets.numbers.size() > 1 ? "' and '" : "", targets.numbers.back(), "'");
    case RowTargets::Kind::kNothing:
      break;
  }
  return absl::StrCat("a column ", kTextNamesShown);
}

bool HasColumns(const Columns& columns, const RowTargets& targets) {
  const bool one_of_labels = (columns.label == kNoColumn) != (columns.labels == kNoColumn);
  return columns.text != kNoColumn &&
         (targets.kind != RowTargets::Kind::kLabels || one_of_labels) &&
         std::count(columns.numbers.begin(), columns.numbers.end(), kNoColumn) == 0;
}

// "'sentence', 'label'".
std::string Shown(const CsvRecord& header) {
  std::vector<std::string> names;
  for (const std::string& field : header.fields) names.push_back(Quoted(field));
  return FirstNames(names);
}

// "','" or "tab".
std::string SeparatorName(char separator) {
  return separator == '\t' ? "tab" : absl::StrCat("'", std::string(1, separator), "'");
}

// Without spaces around it, also those of other scripts and those that have no width.
absl::string_view StripSpaces(absl::string_view text) {
  constexpr absl::string_view kOtherSpaces[] = {"\u00A0", "\u200B", "\u2060", "\u3000", "\uFEFF"};
  size_t size = text.size() + 1;
  while (text.size() < size) {
    size = text.size();
    text = absl::StripAsciiWhitespace(text);
    for (const absl::string_view space : kOtherSpaces) {
      while (absl::ConsumePrefix(&text, space)) {
      }
      while (absl::ConsumeSuffix(&text, space)) {
      }
    }
  }
  return text;
}

bool IsName(absl::string_view field, absl::string_view name, bool any_case) {
  field = StripSpaces(field);
  return any_case ? absl::EqualsIgnoreCase(field, name) : field == name;
}

// The field of the header that is `name`, in this case where there is one, else in any.
absl::StatusOr<size_t> FindColumn(const CsvRecord& header, absl::string_view name,
                                  const std::string& origin) {
  for (const bool any_case : {false, true}) {
    size_t found = kNoColumn;
    for (size_t i = 0; i < header.fields.size(); ++i) {
      if (!IsName(header.fields[i], name, any_case)) continue;
      if (found != kNoColumn) {
        return DataError(origin, header.line,
                         absl::StrCat(name, ": expected each column once in the header row, got ",
                                      Shown(header), "; remove or rename one of them"));
      }
      found = i;
    }
    if (found != kNoColumn) return found;
  }
  return kNoColumn;
}

absl::StatusOr<Columns> FindColumns(const CsvRecord& header, const std::string& origin,
                                    const RowTargets& targets) {
  Columns columns{.count = header.fields.size()};
  columns.numbers.resize(targets.numbers.size(), kNoColumn);
  for (size_t i = 0; i < kTextNames.size() && columns.text == kNoColumn; ++i) {
    HPO_ASSIGN_OR_RETURN(columns.text, FindColumn(header, kTextNames[i], origin));
  }
  std::vector<std::pair<std::string, size_t*>> names = {{"pair", &columns.pair}};
  if (targets.kind == RowTargets::Kind::kLabels) {
    names.insert(names.end(), {{"label", &columns.label}, {"labels", &columns.labels}});
  }
  for (size_t i = 0; i < targets.numbers.size(); ++i) {
    names.emplace_back(targets.numbers[i], &columns.numbers[i]);
  }
  for (const auto& [name, column] : names) {
    HPO_ASSIGN_OR_RETURN(*column, FindColumn(header, name, origin));
  }
  return columns;
}

bool IsComment(const CsvRecord& record) {
  const std::string& start = record.fields.front();
  return absl::StartsWith(start, "#") || absl::StartsWith(start, "//");
}

// JSON begins with a bracket, and a quote or another bracket after it.
absl::Status CheckNotJson(absl::string_view text, const std::string& origin) {
  const absl::string_view start = absl::StripLeadingAsciiWhitespace(text);
  if (!absl::StartsWith(start, "{") && !absl::StartsWith(start, "[")) return absl::OkStatus();
  const absl::string_view next = absl::StripLeadingAsciiWhitespace(start.substr(1));
  if (!absl::StartsWith(next, "\"") && !absl::StartsWith(next, "{")) return absl::OkStatus();
  return DataError(origin, PlaceOf(text, text.size() - start.size()),
                   "expected CSV with a header row, got JSON; rename the file so that it ends in "
                   ".jsonl");
}

absl::StatusOr<Columns> ReadHeader(const CsvRecord& header, const std::string& origin,
                                   const RowTargets& targets, char separator) {
  HPO_ASSIGN_OR_RETURN(Columns columns, FindColumns(header, origin, targets));
  if (HasColumns(columns, targets)) return columns;
  const bool apart = header.fields.size() > 1;
  const std::string separated = apart ? absl::StrCat("separated by ", SeparatorName(separator))
                                      : "not separated by ',', ';', tab or '|'";
  absl::string_view cure = "write these names into the first line of the file";
  if (!apart) cure = "write these names into the first line of the file, with one of these between";
  if (IsComment(header)) cure = "it is a comment, which CSV does not have: remove it";
  return DataError(origin, header.line,
                   absl::StrCat("expected a header row with ", ExpectedColumns(targets), ", got ",
                                Shown(header), " (", separated, "); ", cure));
}

// The separator with which the header row has the columns, else the one with which it has the most
// fields.
char FindSeparator(absl::string_view content, const std::string& origin,
                   const RowTargets& targets) {
  char best = ',';
  size_t most = 0;
  for (const char separator : {',', ';', '\t', '|'}) {
    CsvScanner scanner(content, origin, separator);
    CsvRecord header;
    const absl::StatusOr<bool> found = scanner.Next(header);
    if (!found.ok() || !*found) continue;
    const absl::StatusOr<Columns> columns = FindColumns(header, origin, targets);
    if (columns.ok() && HasColumns(*columns, targets)) return separator;
    if (header.fields.size() <= most) continue;
    most = header.fields.size();
    best = separator;
  }
  return best;
}

// Excel says the separator in a line before the header: "sep=;".
void SkipSeparatorLine(absl::string_view& content) {
  if (!absl::StartsWithIgnoreCase(content, "sep=")) return;
  const size_t end = content.find_first_of("\r\n");
  if (end != 5) return;
  content.remove_prefix(end);
}

std::vector<std::string> SplitLabels(const std::string& field) {
  if (field.empty()) return {};
  std::vector<std::string> labels;
  for (const absl::string_view label : absl::StrSplit(field, '|')) {
    labels.emplace_back(absl::StripAsciiWhitespace(label));
  }
  return labels;
}

absl::StatusOr<std::vector<double>> NumbersOf(const CsvRecord& record, const Columns& columns,
                                              const std::string& origin,
                                              const RowTargets& targets) {
  std::vector<double> numbers(columns.numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string& field = record.fields[columns.numbers[i]];
    if (absl::SimpleAtod(field, &numbers[i]) && std::isfinite(numbers[i])) continue;
    return DataError(origin, record.line,
                     absl::StrCat(targets.numbers[i], ": expected a number, got ", Quoted(field),
                                  absl::StrContains(field, ',') ? "; write a decimal point" : ""));
  }
  return numbers;
}

RowFields FieldsOf(CsvRecord record, const Columns& columns, std::vector<double> numbers) {
  RowFields fields{.line = record.line};
  fields.numbers = std::move(numbers);
  fields.text = std::move(record.fields[columns.text]);
  if (columns.pair != kNoColumn) fields.pair = std::move(record.fields[columns.pair]);
  if (columns.label != kNoColumn) fields.label = std::move(record.fields[columns.label]);
  if (columns.labels != kNoColumn) fields.labels = SplitLabels(record.fields[columns.labels]);
  return fields;
}

absl::Status CheckFields(const CsvRecord& record, const std::string& origin) {
  for (const std::string& field : record.fields) {
    HPO_RETURN_IF_ERROR(CheckRecordSize(field, origin, record.line));
  }
  return absl::OkStatus();
}

// Python and JSON write lists in brackets.
absl::Status CheckLabelList(const CsvRecord& record, const Columns& columns,
                            const std::string& origin) {
  if (columns.labels == kNoColumn) return absl::OkStatus();
  const std::string& field = record.fields[columns.labels];
  if (!absl::StartsWith(field, "[") || !absl::EndsWith(field, "]")) return absl::OkStatus();
  return DataError(origin, record.line,
                   absl::StrCat("labels: expected labels with '|' between them, such as a|b, got ",
                                Quoted(field), "; write them so, or the rows as JSON lines"));
}

// The number of fields is that of the header row.
absl::Status CheckCount(const CsvRecord& record, const CsvRecord& header, char separator,
                        const std::string& origin) {
  const size_t expected = header.fields.size();
  const size_t got = record.fields.size();
  if (got == expected) return absl::OkStatus();
  std::string cure = got > expected
                         ? absl::StrCat("a text that contains ", SeparatorName(separator))
                         : "a text over several lines";
  absl::StrAppend(&cure, " must be in quotes (\")");
  if (IsComment(record)) cure = "it is a comment, which CSV does not have: remove it";
  return DataError(origin, record.line,
                   absl::StrCat("expected ", expected, " fields as in the header row (",
                                Shown(header), "), got ", got, "; ", cure));
}

// What is no row, although it has the form of one.
absl::Status CheckIsRow(const CsvRecord& record, const CsvRecord& header,
                        const std::string& origin) {
  if (header.fields.size() < 2) return absl::OkStatus();  // a text may be anything
  const bool again = std::equal(
      record.fields.begin(), record.fields.end(), header.fields.begin(),
      [](const std::string& a, const std::string& b) { return StripSpaces(a) == StripSpaces(b); });
  if (again) {
    return DataError(origin, record.line,
                     absl::StrCat("expected a row, got the header row of line ", header.line,
                                  " again, as where files were put together; remove it"));
  }
  const bool ruled = std::all_of(record.fields.begin(), record.fields.end(), [](const auto& field) {
    return field.find_first_not_of(" :-") == std::string::npos;
  });
  if (ruled && absl::StrContains(absl::StrJoin(record.fields, ""), "--")) {
    return DataError(origin, record.line,
                     "expected a row, got the line below the header of a Markdown table; write the "
                     "table as CSV");
  }
  return absl::OkStatus();
}

bool IsBlank(const CsvRecord& record) {
  return record.fields.size() == 1 && absl::StripAsciiWhitespace(record.fields[0]).empty();
}

}  // namespace

void CsvScanner::Take(size_t size) {
  place_ = PlaceOf(rest_, size, place_);
  rest_.remove_prefix(size);
}

bool CsvScanner::SkipLineEnd() {
  if (rest_.empty() || (rest_[0] != '\r' && rest_[0] != '\n')) return false;
  rest_.remove_prefix(absl::StartsWith(rest_, "\r\n") ? 2 : 1);
  place_ = {.line = place_.line + 1, .column = 1};
  return true;
}

absl::StatusOr<bool> CsvScanner::Next(CsvRecord& record) {
  while (SkipLineEnd()) {
  }
  if (rest_.empty()) return false;
  record.fields.clear();
  record.line = place_.line;
  FieldEnd end = FieldEnd::kSeparator;
  while (end == FieldEnd::kSeparator) {
    std::string field;
    HPO_ASSIGN_OR_RETURN(end, ReadField(field, record.fields.size() + 1));
    record.fields.push_back(std::move(field));
  }
  return true;
}

absl::StatusOr<CsvScanner::FieldEnd> CsvScanner::ReadField(std::string& field, size_t number) {
  const int64_t first_line = place_.line;
  if (absl::StartsWith(rest_, "\"")) {
    HPO_RETURN_IF_ERROR(ReadQuoted(field, number));
  } else {
    HPO_RETURN_IF_ERROR(ReadPlain(field, number));
  }
  if (!rest_.empty() && rest_[0] == separator_) {
    Take(1);
    return FieldEnd::kSeparator;
  }
  if (rest_.empty() || SkipLineEnd()) return FieldEnd::kRecord;
  return DataError(
      origin_, place_,
      absl::StrCat("field ", number, ": expected ", SeparatorName(separator_),
                   " or the end of the line after the closing quote",
                   place_.line > first_line
                       ? absl::StrCat(" of the field that begins in line ", first_line)
                       : "",
                   ", got '", rest_.substr(0, CharacterSize(rest_)), "'; ", kQuoteTwice));
}

absl::Status CsvScanner::ReadQuoted(std::string& field, size_t number) {
  const TextPlace opened = place_;
  Take(1);
  while (true) {
    const size_t quote = rest_.find('"');
    if (quote == absl::string_view::npos) {
      return DataError(origin_, opened,
                       absl::StrCat("field ", number, ": expected a closing quote, got none up to ",
                                    "the end of the file; ", kQuoteTwice));
    }
    const absl::string_view piece = rest_.substr(0, quote);
    field.append(piece.data(), piece.size());
    Take(quote + 1);
    if (!absl::StartsWith(rest_, "\"")) return absl::OkStatus();
    field.push_back('"');
    Take(1);
  }
}

absl::Status CsvScanner::ReadPlain(std::string& field, size_t number) {
  const char ends[] = {separator_, '\r', '\n', '"'};
  const size_t end = std::min(rest_.find_first_of(absl::string_view(ends, 4)), rest_.size());
  field.assign(rest_.data(), end);
  Take(end);
  if (absl::StartsWith(rest_, "\"")) {
    return DataError(
        origin_, place_,
        absl::StrCat("field ", number, ": expected quotes around the whole field, got ",
                     "one inside; ", kQuoteTwice));
  }
  return absl::OkStatus();
}

absl::StatusOr<DataFile> ParseCsv(absl::string_view content, const std::string& origin,
                                  const RowTargets& targets) {
  HPO_ASSIGN_OR_RETURN(DecodedText decoded, DecodeText(content, origin));
  absl::string_view text = decoded.text();
  SkipSeparatorLine(text);
  HPO_RETURN_IF_ERROR(CheckNotJson(text, origin));
  const char separator = FindSeparator(text, origin, targets);
  CsvScanner scanner(text, origin, separator);
  DataFileBuilder builder(origin, targets.kind);
  for (std::string& warning : decoded.warnings) builder.Warn(std::move(warning));
  CsvRecord header;
  HPO_ASSIGN_OR_RETURN(bool more, scanner.Next(header));
  if (!more) return builder.Finish(content.empty() ? "no bytes" : "no text but empty lines");
  HPO_RETURN_IF_ERROR(CheckFields(header, origin));
  HPO_ASSIGN_OR_RETURN(const Columns columns, ReadHeader(header, origin, targets, separator));
  CsvRecord record;
  while (true) {
    HPO_ASSIGN_OR_RETURN(more, scanner.Next(record));
    if (!more) return builder.Finish("a header row alone");
    if (columns.count > 1 && IsBlank(record)) continue;
    HPO_RETURN_IF_ERROR(CheckFields(record, origin));
    HPO_RETURN_IF_ERROR(CheckCount(record, header, separator, origin));
    HPO_RETURN_IF_ERROR(CheckIsRow(record, header, origin));
    HPO_RETURN_IF_ERROR(CheckLabelList(record, columns, origin));
    HPO_ASSIGN_OR_RETURN(std::vector<double> numbers, NumbersOf(record, columns, origin, targets));
    HPO_RETURN_IF_ERROR(builder.Add(FieldsOf(std::move(record), columns, std::move(numbers))));
  }
}

}  // namespace hpo::text
