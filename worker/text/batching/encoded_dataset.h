// A data set as token ids, in flat buffers: what batches are cut from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/text/batching/token_file.h"
#include "worker/text/data/dataset.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"

namespace hpo::text {

// Row i's tokens are [token_offsets[i], token_offsets[i + 1]) of `ids` and `type_ids`; its labels
// are [label_offsets[i], label_offsets[i + 1]) of `labels`. Both offset vectors hold rows + 1
// entries, or none.
struct EncodedDataset {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;
  std::vector<int64_t> token_offsets;
  std::vector<int32_t> labels;
  std::vector<int64_t> label_offsets;
  std::vector<float> numbers;  // of a regression: [rows, num_labels]; else empty
  int64_t num_labels = 0;      // 0: rows have none
  bool multi_label = false;
  int32_t pad_id = 0;

  int64_t num_rows() const {
    return token_offsets.empty() ? 0 : static_cast<int64_t>(token_offsets.size()) - 1;
  }
  int64_t Length(int64_t row) const {
    return token_offsets[static_cast<size_t>(row) + 1] - token_offsets[static_cast<size_t>(row)];
  }
  std::span<const int32_t> Ids(int64_t row) const;
  std::span<const int32_t> TypeIds(int64_t row) const;
  std::span<const int32_t> Labels(int64_t row) const;
};

// Adds the tokens of a row, which come after those of the others. `data` has token_offsets.
void AddTokens(const Encoding& row, EncodedDataset& data);

// Tokenizes every row, in order, truncated to `max_length` tokens (special tokens included).
//   InvalidArgument  max_length leaves no room for a token between the special ones
absl::StatusOr<EncodedDataset> EncodeDataset(const Dataset& dataset, const Tokenizer& tokenizer,
                                             int64_t max_length);

// The same where the rows' tokens are known. tokens: of all rows of the data set, in order.
EncodedDataset WithTokens(const Dataset& dataset, const TokenRows& tokens, int32_t pad_id);

// How many rows of `dataset`, which is `encoded` at `max_length`, lost tokens. Tokenizes those
// again that have as many.
int64_t CountTruncated(const Dataset& dataset, const EncodedDataset& encoded,
                       const Tokenizer& tokenizer, int64_t max_length);

// Tokens of all rows. Points into `data`, which has rows.
TokenRows TokensOf(const EncodedDataset& data);

// The labels that no row has, ascending, as indices below num_labels. Of a classification.
std::vector<int32_t> AbsentLabels(const EncodedDataset& data);

// Some of the rows: those of these numbers, in this order.
EncodedDataset SelectRows(const EncodedDataset& data, std::span<const int64_t> rows);

}  // namespace hpo::text
