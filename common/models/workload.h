// What of the data matters to memory. Facts that a worker measures once per data set and model
// vocabulary; the server sees nothing else of the data.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/task_kind.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// Number of rows by token length (special tokens included, before truncation).
using LengthHistogram = std::map<int64_t, int64_t>;

constexpr const char* kQueryCounts = "queries";

// One data set as a worker advertises it.
struct DataSetFacts {
  std::string name;    // the file name a study refers to
  std::string digest;  // SHA-256 of the file, hexadecimal
  int64_t rows = 0;
  std::vector<std::string> labels;  // sorted
  bool multi_label = false;
  bool pairs = false;
  // By vocabulary digest (ModelFacts::tokenizer_digest). Of a file of aspects the lengths of its
  // queries, and under kQueryCounts its texts by the number of their queries.
  std::map<std::string, LengthHistogram> lengths;
  bool operator==(const DataSetFacts&) const = default;
};

// The workload of one trial.
struct Workload {
  TaskKind task = TaskKind::kTextClassification;
  int64_t num_labels = 2;  // of a regression its numbers; language modelling has none
  bool multi_label = false;
  LengthHistogram train_lengths;  // empty: assume every row is max_length long
  LengthHistogram validation_lengths;
  // Of multi-query: texts by the number of their queries, whose lengths those above are; empty: one
  // query a text.
  LengthHistogram train_queries;
  LengthHistogram validation_queries;
  auto operator<=>(const Workload&) const = default;
};

// Tokens of the median row, the shorter one of two; 0 without rows.
int64_t MedianLength(const LengthHistogram& lengths);

// The longest row after truncation to `max_length`, rounded up to the padding multiple (16).
// `max_length` itself (rounded up) for an empty histogram. max_length > 0.
int64_t LongestPadded(const LengthHistogram& lengths, int64_t max_length);

constexpr int64_t kPaddingMultiple = 16;

// Batches in a pool, within which rows of like length are put together (train.group_by_length).
constexpr int64_t kPoolBatches = 50;

nlohmann::json DataSetFactsToJson(const DataSetFacts& facts);
absl::StatusOr<DataSetFacts> DataSetFactsFromJson(const nlohmann::json& json);

}  // namespace hpo
