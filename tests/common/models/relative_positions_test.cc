#include "common/models/relative_positions.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace hpo {
namespace {

// Rows of transformers' make_log_bucket_position plus the number of buckets, clamped.
TEST(RelativeRow, IsTheLibrarys) {
  struct Case {
    int64_t buckets;
    int64_t farthest;
    std::vector<std::pair<int64_t, int64_t>> rows;  // by distance
  };
  const Case cases[] = {
      {256,
       512,
       {{0, 256},
        {1, 257},
        {-1, 255},
        {127, 383},
        {128, 384},
        {129, 385},
        {130, 386},
        {200, 425},
        {-200, 87},
        {300, 463},
        {400, 489},
        {510, 511},
        {-511, 1}}},
      {8, 40, {{0, 8}, {3, 11}, {6, 13}, {9, 14}, {15, 14}, {18, 14}, {21, 15}, {39, 15}}},
      {7, 64, {{0, 7}, {2, 9}, {3, 10}, {4, 11}, {9, 11}, {20, 12}, {63, 12}, {-63, 2}}},
      {12, 24, {{5, 17}, {6, 18}, {7, 19}, {8, 20}, {12, 21}, {23, 23}, {30, 23}, {-40, 0}}},
  };
  for (const Case& test : cases) {
    const RelativeAttention relative = {.span = test.buckets, .bucketed = true};
    for (const auto& [distance, row] : test.rows) {
      EXPECT_EQ(RelativeRow(relative, test.farthest, distance), row)
          << test.buckets << " buckets, distance " << distance;
    }
    // Buckets may end elsewhere than the model's positions.
    RelativeAttention other = relative;
    other.farthest = test.farthest;
    EXPECT_EQ(RelativeRow(other, 1000, 20), RelativeRow(relative, test.farthest, 20));
  }
}

TEST(RelativeRow, WithoutBucketsIsTheDistanceAsFarAsThereAreRows) {
  const RelativeAttention relative = {.span = 9};
  EXPECT_EQ(RelativeRow(relative, 64, 0), 9);
  EXPECT_EQ(RelativeRow(relative, 64, 8), 17);
  EXPECT_EQ(RelativeRow(relative, 64, 30), 17);
  EXPECT_EQ(RelativeRow(relative, 64, -9), 0);
  EXPECT_EQ(RelativeRow(relative, 64, -30), 0);
}

TEST(RelativeRow, NeverFalls) {
  for (const int64_t span : {2, 7, 64}) {
    const RelativeAttention relative = {.span = span, .bucketed = true};
    for (int64_t distance = -299; distance < 300; ++distance) {
      EXPECT_LE(RelativeRow(relative, 300, distance - 1), RelativeRow(relative, 300, distance));
    }
  }
}

}  // namespace
}  // namespace hpo
