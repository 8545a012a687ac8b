// Rows of a task, from files on disk to label indices or numbers. No torch, no tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/text/data/readers.h"

namespace hpo::text {

// One row with its labels as indices into Dataset::label_names, ascending. Single-label: exactly
// one; multi-label: any number.
struct DatasetRow {
  std::string text;
  std::optional<std::string> pair;
  std::vector<int32_t> labels;
  std::vector<float> numbers;  // of a regression: one for each of Dataset::label_names
  int64_t line = 0;            // where the row starts in its file
  bool operator==(const DatasetRow&) const = default;
};

struct Dataset {
  std::string path;
  std::vector<std::string> label_names;  // of a regression: the fields; else none without labels
  bool multi_label = false;
  bool pairs = false;  // every row has a pair; false: none has
  std::vector<DatasetRow> rows;
  std::vector<std::string> warnings = {};  // about the file: sentences that name line and column
  bool operator==(const Dataset&) const = default;
};

struct TaskData {
  Dataset train;
  Dataset validation;
};

// The distinct labels of `file`: in numeric order where all are integers, else in byte order.
std::vector<std::string> SortedLabels(const DataFile& file);

// Reads both files and gives them one list of labels: `labels`, or where that is empty the sorted
// labels of the training file.
//   NotFound, Unavailable  see ReadDataFile
//   InvalidArgument        see ReadDataFile; a label of either file that the list lacks; a label
//                          that the training file lacks, or fewer than two (single-label);
//                          the files differ in pairs or in single/multi-label.
//                          Names the label, file and line.
absl::StatusOr<TaskData> LoadTaskData(const std::string& train_path,
                                      const std::string& validation_path,
                                      const std::vector<std::string>& labels);

// Reads both files of a regression: the fields `columns` (one or more; empty: "label") of every row
// are numbers.
//   as LoadTaskData, but for labels; InvalidArgument too where a number is no float
absl::StatusOr<TaskData> LoadRegressionData(const std::string& train_path,
                                            const std::string& validation_path,
                                            const std::vector<std::string>& columns);

// Reads both files of texts alone.
//   as LoadTaskData, but for labels; InvalidArgument too where rows have a pair
absl::StatusOr<TaskData> LoadPlainTexts(const std::string& train_path,
                                        const std::string& validation_path);

// A share of the rows, as their numbers, ascending; drawn by `seed`: of each label's rows that
// share, rounded up; with several labels a row of all rows. share: in (0, 1].
std::vector<int64_t> ShareOf(const Dataset& dataset, double share, uint64_t seed);

// The same of `rows` rows, 0 or more, whatever their labels.
std::vector<int64_t> ShareOf(int64_t rows, double share, uint64_t seed);

}  // namespace hpo::text
