// What every data file must fulfil, whatever its format: the readers hand their rows in here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/data/readers.h"

namespace hpo {

// One row as a format's parser found it; a field that is absent is nullopt.
struct RowFields {
  int64_t line = 0;
  std::optional<std::string> text;
  std::optional<std::string> pair;
  std::optional<std::string> label;
  std::optional<std::vector<std::string>> labels;
  std::vector<double> numbers;  // where the file is one of numbers: all of them
};

// "origin:line: message", the form of every error about data.
absl::Status DataError(absl::string_view origin, int64_t line, absl::string_view message);

// Encoding of one line or record: UTF-8, no NUL, at most kMaxRecordBytes.
absl::Status CheckRecord(absl::string_view record, absl::string_view origin, int64_t line);

// `content` without a leading UTF-8 byte order mark.
absl::string_view WithoutByteOrderMark(absl::string_view content);

// Collects rows and checks them against each other. One use: Add..., then Finish.
class DataFileBuilder {
 public:
  DataFileBuilder(const std::string& origin, RowTargets::Kind kind) : kind_(kind) {
    file_.path = origin;
  }

  //   InvalidArgument  text missing; unlike the first row in pair; in a file of labels: both or
  //                    neither of label and labels, an empty label, one given twice in a row, or
  //                    unlike the first row in label/labels
  absl::Status Add(RowFields fields);

  //   InvalidArgument  no row was added
  absl::StatusOr<DataFile> Finish();

 private:
  absl::Status CheckLikeFirstRow(const RowFields& fields) const;
  absl::StatusOr<std::vector<std::string>> TakeLabels(RowFields& fields) const;

  RowTargets::Kind kind_;
  DataFile file_;
};

}  // namespace hpo
