#include "common/models/packed_rows.h"

#include "gtest/gtest.h"

namespace hpo {
namespace {

TEST(PackRows, PutsNeighboursOfOneLengthTogether) {
  const std::pair<std::vector<int64_t>, PackedRows> cases[] = {
      {{}, {}},
      {{7}, {{1, 7}}},
      {{7, 7, 7}, {{3, 7}}},
      {{7, 5, 5, 7}, {{1, 7}, {2, 5}, {1, 7}}},
  };
  for (const auto& [lengths, expected] : cases) EXPECT_EQ(PackRows(lengths), expected);
}

TEST(PackedRows, CountsRowsAndTokens) {
  const PackedRows packed = {{1, 7}, {2, 5}, {1, 9}};
  EXPECT_EQ(NumRows(packed), 4);
  EXPECT_EQ(TotalTokens(packed), 7 + 2 * 5 + 9);
  EXPECT_EQ(LongestRow(packed), 9);
  EXPECT_EQ(NumRows({}), 0);
  EXPECT_EQ(TotalTokens({}), 0);
  EXPECT_EQ(LongestRow({}), 0);
}

}  // namespace
}  // namespace hpo
