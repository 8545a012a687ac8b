// What of a data file decides how much memory its batches take: how many model inputs a sample
// becomes (aspects, in multi-aspect data), and how long its text is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/workload.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::cli {

struct LargestSample {
  int64_t line = 0;  // from 1
  int64_t size = 0;  // items, or tokens where a sample is one input
  bool operator==(const LargestSample&) const = default;
};

struct DatasetProfile {
  int64_t samples = 0;
  // The member of each sample that lists its items, such as "Quadruplet"; empty: a sample is one
  // input.
  std::string items_key;
  LengthHistogram items;               // samples by number of items; each 1 without an items_key
  LengthHistogram tokens;              // samples by length of their text
  bool counted_words = false;          // `tokens` are words: no tokenizer was given
  std::vector<LargestSample> largest;  // the first few, largest first, then by line
  std::vector<std::string> warnings;   // about the file: sentences that name line and column
  bool operator==(const DatasetProfile&) const = default;
};

struct ProfileOptions {
  std::string items_key;                       // empty: the first member that is a list of objects
  const text::Tokenizer* tokenizer = nullptr;  // null: words are counted
};

// Reads CSV (.csv, .tsv), or else JSON rows, with text, sentence or review, in any case, as
// worker/text/data/readers.h does. Token lengths are of the text, special tokens
// included; what a pipeline puts before it (a question about an aspect) is not part of the file.
//   NotFound, Unavailable  the file cannot be read
//   InvalidArgument        no samples; a line that is no object or has no text, no sample that has
//                          options.items_key; names file and line
absl::StatusOr<DatasetProfile> ProfileDataset(const std::string& path,
                                              const ProfileOptions& options);

// ---- Of a histogram with at least one sample ----

int64_t LargestOf(const LengthHistogram& histogram);
double MeanOf(const LengthHistogram& histogram);

// The smallest value that at least `percent` of the samples do not exceed. percent in (0, 100].
int64_t PercentileOf(const LengthHistogram& histogram, double percent);

int64_t SamplesUpTo(const LengthHistogram& histogram, int64_t value);

// Mean over all batches of `batch` samples, drawn without replacement, of the largest in a batch.
double MeanBatchMaximum(const LengthHistogram& histogram, int64_t batch);

}  // namespace hpo::cli
