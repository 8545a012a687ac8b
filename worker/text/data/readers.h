// Reads data files as users keep them: JSON or CSV with the fields text (or sentence, or review;
// field_names.h), pair (optional) and what a task learns: label or labels, or fields of numbers, or
// nothing. Names of fields are taken in any case. The extension decides: .jsonl, .ndjson, .json, or
// .csv, .tsv.
//
// JSON: one object per line, one array of objects, or objects over several lines; empty lines are
// skipped. `label` is a string, an integer, true or false; `labels` is an array of them, possibly
// empty. Other keys are ignored.
// CSV: RFC 4180 with a header row, with ',', ';', tab or '|' between fields as the header has them.
// `labels` holds labels separated by '|'; an empty field is none.
// Both: UTF-8 or UTF-16 (text_encoding.h), an optional byte order mark, LF, CRLF or CR. Characters
// that are none become U+FFFD, with a warning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::text {

// What rows say in addition to their text.
struct RowTargets {
  enum class Kind { kLabels, kNumbers, kNothing };
  Kind kind = Kind::kLabels;
  std::vector<std::string> numbers;  // of kNumbers: the fields, one or more
};

struct DataFileRow {
  std::string text;
  std::optional<std::string> pair;
  std::vector<std::string> labels;  // integers as decimal text
  int64_t line = 0;                 // where the row starts, from 1
  std::vector<double> numbers;      // of kNumbers: finite, one for each field
  bool operator==(const DataFileRow&) const = default;
};

struct DataFile {
  std::string path;
  bool multi_label = false;  // the file says `labels`
  bool pairs = false;        // every row has a pair; false: none has
  std::vector<DataFileRow> rows;
  std::vector<std::string> warnings = {};  // sentences that name file, line and column
  bool operator==(const DataFile&) const = default;
};

// A line (CSV: a field) longer than this is an error rather than a memory problem.
constexpr int64_t kMaxRecordBytes = int64_t{16} << 20;

enum class DataFormat { kJson, kCsv };

//   InvalidArgument  another extension than those above
absl::StatusOr<DataFormat> DataFormatOf(const std::string& path);

// Reads a whole file; fields that `targets` does not ask for are ignored.
//   NotFound         no such file
//   Unavailable      it could not be read
//   InvalidArgument  no rows; an unknown extension; not JSON or CSV; another encoding; a field that
//                    is missing, of another type or given twice; both or neither of `label` and
//                    `labels`; rows that differ in pairs or in label/labels; a line or field above
//                    kMaxRecordBytes. Names file, line and field.
absl::StatusOr<DataFile> ReadDataFile(const std::string& path, const RowTargets& targets = {});

// The same for content already in memory (JSON: json_lines.h); `origin` is what errors begin
// with.
absl::StatusOr<DataFile> ParseCsv(absl::string_view content, const std::string& origin,
                                  const RowTargets& targets = {});

}  // namespace hpo::text
