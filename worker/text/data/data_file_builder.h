// What every data file must fulfil, whatever its format: the readers hand their rows in here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/data/readers.h"
#include "worker/text/files/text_place.h"

namespace hpo::text {

// One row as a format's parser found it; a field that is absent is nullopt.
struct RowFields {
  int64_t line = 0;
  std::string text;
  std::optional<std::string> pair;
  std::optional<std::string> label;
  std::optional<std::vector<std::string>> labels;
  std::vector<double> numbers;  // where the file is one of numbers: all of them
  std::string found;            // the names of the fields that a row without labels has, for errors
};

//   InvalidArgument  `record`, a row or a field, has more than kMaxRecordBytes
absl::Status CheckRecordSize(absl::string_view record, absl::string_view origin, int64_t line);

// Collects rows and checks them against each other. One use: Add..., then Finish.
class DataFileBuilder {
 public:
  DataFileBuilder(const std::string& origin, RowTargets::Kind kind) : kind_(kind) {
    file_.path = origin;
  }

  //   InvalidArgument  unlike the first row in pair; in a file of labels: both or neither of label
  //                    and labels, an empty label, one given twice in a row, or unlike the first
  //                    row in label/labels
  absl::Status Add(RowFields fields);

  // Adds a sentence about the file that is no error.
  void Warn(std::string warning) { file_.warnings.push_back(std::move(warning)); }

  //   InvalidArgument  no row was added; `instead` says what the file has: "a header row alone"
  absl::StatusOr<DataFile> Finish(absl::string_view instead);

 private:
  absl::Status CheckLikeFirstRow(const RowFields& fields) const;
  absl::StatusOr<std::vector<std::string>> TakeLabels(RowFields& fields) const;

  RowTargets::Kind kind_;
  DataFile file_;
};

}  // namespace hpo::text
