// Rows of a batch that lie one behind the other, without padding between them (token packing).
// What runs over all tokens alike sees one long row; attention sees each row by itself, rows of one
// length that follow each other together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hpo {

// `rows` rows in a row, each of `tokens` tokens; both are positive.
struct RowGroup {
  int64_t rows = 1;
  int64_t tokens = 1;
  bool operator==(const RowGroup&) const = default;

  int64_t TotalTokens() const { return rows * tokens; }
};

// Neighbours differ in their tokens. Empty: the batch is padded.
using PackedRows = std::vector<RowGroup>;

// Rows of these lengths, in this order; each is positive.
PackedRows PackRows(std::span<const int64_t> lengths);

int64_t NumRows(const PackedRows& packed);
int64_t TotalTokens(const PackedRows& packed);
// Tokens of the longest row; 0 without rows.
int64_t LongestRow(const PackedRows& packed);

}  // namespace hpo
