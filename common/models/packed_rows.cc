#include "common/models/packed_rows.h"

#include <algorithm>

namespace hpo {

PackedRows PackRows(std::span<const int64_t> lengths) {
  PackedRows packed;
  for (const int64_t tokens : lengths) {
    if (!packed.empty() && packed.back().tokens == tokens) {
      ++packed.back().rows;
    } else {
      packed.push_back({.rows = 1, .tokens = tokens});
    }
  }
  return packed;
}

int64_t NumRows(const PackedRows& packed) {
  int64_t rows = 0;
  for (const RowGroup& group : packed) rows += group.rows;
  return rows;
}

int64_t TotalTokens(const PackedRows& packed) {
  int64_t tokens = 0;
  for (const RowGroup& group : packed) tokens += group.TotalTokens();
  return tokens;
}

int64_t LongestRow(const PackedRows& packed) {
  int64_t longest = 0;
  for (const RowGroup& group : packed) longest = std::max(longest, group.tokens);
  return longest;
}

}  // namespace hpo
