// Reads data files as users keep them: JSON lines and CSV with the fields text, pair (optional) and
// what a task learns: label or labels, or fields of numbers, or nothing. The extension decides:
// .jsonl, .ndjson, .json (one object per line), or .csv.
//
// JSONL: one object per line; empty lines are skipped. `label` is a string or an integer; `labels`
// is an array of them, possibly empty. Other keys are ignored.
// CSV: RFC 4180 with a header row. `labels` holds labels separated by '|'; an empty field is none.
// Both: UTF-8, an optional byte order mark, LF or CRLF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo {

// What rows say besides their text.
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
  bool operator==(const DataFile&) const = default;
};

// A line (CSV: a field) longer than this is an error rather than a memory problem.
constexpr int64_t kMaxRecordBytes = int64_t{16} << 20;

// Reads a whole file; fields that `targets` does not ask for are ignored.
//   NotFound         no such file
//   Unavailable      it could not be read
//   InvalidArgument  no rows; an unknown extension; not JSON or CSV; invalid UTF-8 or a NUL byte;
//                    a field that is missing, of another type or given twice; both or neither of
//                    `label` and `labels`; rows that differ in pairs or in label/labels; a line or
//                    field above kMaxRecordBytes. Names file, line and field.
absl::StatusOr<DataFile> ReadDataFile(const std::string& path, const RowTargets& targets = {});

// The same for content already in memory (JSON lines: json_lines.h); `origin` is what errors begin
// with.
absl::StatusOr<DataFile> ParseCsv(absl::string_view content, const std::string& origin,
                                  const RowTargets& targets = {});

}  // namespace hpo
