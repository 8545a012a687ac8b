#include "worker/text/data/csv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "worker/text/data/data_file_builder.h"
#include "worker/text/data/readers.h"

namespace hpo {
namespace {

constexpr size_t kNoColumn = static_cast<size_t>(-1);

// Where the fields of a row stand.
struct Columns {
  size_t count = 0;
  size_t text = kNoColumn;
  size_t pair = kNoColumn;
  size_t label = kNoColumn;
  size_t labels = kNoColumn;
  std::vector<size_t> numbers;
};

// "the columns 'text' and one of 'label' and 'labels'".
std::string ExpectedColumns(const RowTargets& targets) {
  switch (targets.kind) {
    case RowTargets::Kind::kLabels:
      return "the columns 'text' and one of 'label' and 'labels'";
    case RowTargets::Kind::kNumbers:
      return absl::StrCat("the columns 'text', '",
                          absl::StrJoin(targets.numbers.begin(), targets.numbers.end() - 1, "', '"),
                          targets.numbers.size() > 1 ? "' and '" : "", targets.numbers.back(), "'");
    case RowTargets::Kind::kNothing:
      break;
  }
  return "a column 'text'";
}

bool HasColumns(const Columns& columns, const RowTargets& targets) {
  const bool one_of_labels = (columns.label == kNoColumn) != (columns.labels == kNoColumn);
  return columns.text != kNoColumn &&
         (targets.kind != RowTargets::Kind::kLabels || one_of_labels) &&
         std::count(columns.numbers.begin(), columns.numbers.end(), kNoColumn) == 0;
}

absl::StatusOr<Columns> ReadHeader(const CsvRecord& header, const std::string& origin,
                                   const RowTargets& targets) {
  Columns columns{.count = header.fields.size()};
  columns.numbers.resize(targets.numbers.size(), kNoColumn);
  std::vector<std::pair<std::string, size_t*>> names = {{"text", &columns.text},
                                                        {"pair", &columns.pair}};
  if (targets.kind == RowTargets::Kind::kLabels) {
    names.insert(names.end(), {{"label", &columns.label}, {"labels", &columns.labels}});
  }
  for (size_t i = 0; i < targets.numbers.size(); ++i) {
    names.emplace_back(targets.numbers[i], &columns.numbers[i]);
  }
  for (size_t i = 0; i < header.fields.size(); ++i) {
    for (const auto& [name, column] : names) {
      if (header.fields[i] != name) continue;
      if (*column != kNoColumn) {
        return DataError(origin, header.line,
                         absl::StrCat(name, ": expected each column once in the header row"));
      }
      *column = i;
    }
  }
  if (!HasColumns(columns, targets)) {
    return DataError(origin, header.line,
                     absl::StrCat("expected a header row with ", ExpectedColumns(targets)));
  }
  return columns;
}

std::vector<std::string> SplitLabels(const std::string& field) {
  if (field.empty()) return {};
  return absl::StrSplit(field, '|');
}

absl::StatusOr<std::vector<double>> NumbersOf(const CsvRecord& record, const Columns& columns,
                                              const std::string& origin,
                                              const RowTargets& targets) {
  std::vector<double> numbers(columns.numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string& field = record.fields[columns.numbers[i]];
    if (absl::SimpleAtod(field, &numbers[i]) && std::isfinite(numbers[i])) continue;
    return DataError(origin, record.line,
                     absl::StrCat(targets.numbers[i], ": expected a number, got '", field, "'"));
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
    HPO_RETURN_IF_ERROR(CheckRecord(field, origin, record.line));
  }
  return absl::OkStatus();
}

}  // namespace

bool CsvScanner::SkipLineEnd() {
  if (absl::StartsWith(rest_, "\r\n")) {
    rest_.remove_prefix(2);
  } else if (absl::StartsWith(rest_, "\n")) {
    rest_.remove_prefix(1);
  } else {
    return false;
  }
  ++line_;
  return true;
}

absl::StatusOr<bool> CsvScanner::Next(CsvRecord& record) {
  while (SkipLineEnd()) {
  }
  if (rest_.empty()) return false;
  record.fields.clear();
  record.line = line_;
  FieldEnd end = FieldEnd::kComma;
  while (end == FieldEnd::kComma) {
    std::string field;
    HPO_ASSIGN_OR_RETURN(end, ReadField(field, record.fields.size() + 1));
    record.fields.push_back(std::move(field));
  }
  return true;
}

absl::StatusOr<CsvScanner::FieldEnd> CsvScanner::ReadField(std::string& field, size_t number) {
  if (absl::StartsWith(rest_, "\"")) {
    HPO_RETURN_IF_ERROR(ReadQuoted(field, number));
  } else {
    HPO_RETURN_IF_ERROR(ReadPlain(field, number));
  }
  if (absl::StartsWith(rest_, ",")) {
    rest_.remove_prefix(1);
    return FieldEnd::kComma;
  }
  if (rest_.empty() || SkipLineEnd()) return FieldEnd::kRecord;
  return DataError(
      origin_, line_,
      absl::StrCat("field ", number, ": expected a comma or the end of the line after the field"));
}

absl::Status CsvScanner::ReadQuoted(std::string& field, size_t number) {
  const int64_t opened = line_;
  rest_.remove_prefix(1);
  while (true) {
    const size_t quote = rest_.find('"');
    if (quote == absl::string_view::npos) {
      return DataError(origin_, opened,
                       absl::StrCat("field ", number, ": expected a closing quote, got none"));
    }
    const absl::string_view piece = rest_.substr(0, quote);
    field.append(piece.data(), piece.size());
    line_ += std::count(piece.begin(), piece.end(), '\n');
    rest_.remove_prefix(quote + 1);
    if (!absl::StartsWith(rest_, "\"")) return absl::OkStatus();
    field.push_back('"');
    rest_.remove_prefix(1);
  }
}

absl::Status CsvScanner::ReadPlain(std::string& field, size_t number) {
  const size_t end = std::min(rest_.find_first_of(",\r\n\""), rest_.size());
  field.assign(rest_.data(), end);
  rest_.remove_prefix(end);
  if (absl::StartsWith(rest_, "\"")) {
    return DataError(
        origin_, line_,
        absl::StrCat("field ", number, ": expected quotes around the whole field, got one inside"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DataFile> ParseCsv(absl::string_view content, const std::string& origin,
                                  const RowTargets& targets) {
  CsvScanner scanner(WithoutByteOrderMark(content), origin);
  DataFileBuilder builder(origin, targets.kind);
  CsvRecord record;
  HPO_ASSIGN_OR_RETURN(bool more, scanner.Next(record));
  if (!more) return builder.Finish();
  HPO_RETURN_IF_ERROR(CheckFields(record, origin));
  HPO_ASSIGN_OR_RETURN(const Columns columns, ReadHeader(record, origin, targets));
  while (true) {
    HPO_ASSIGN_OR_RETURN(more, scanner.Next(record));
    if (!more) return builder.Finish();
    HPO_RETURN_IF_ERROR(CheckFields(record, origin));
    if (record.fields.size() != columns.count) {
      return DataError(origin, record.line,
                       absl::StrCat("expected ", columns.count,
                                    " fields as in the header row, got ", record.fields.size()));
    }
    HPO_ASSIGN_OR_RETURN(std::vector<double> numbers, NumbersOf(record, columns, origin, targets));
    HPO_RETURN_IF_ERROR(builder.Add(FieldsOf(std::move(record), columns, std::move(numbers))));
  }
}

}  // namespace hpo
