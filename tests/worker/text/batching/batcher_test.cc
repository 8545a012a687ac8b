#include "worker/text/batching/batcher.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "common/base/random.h"
#include "common/models/workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Row i has lengths[i] tokens, all of id i + 1, and label i % 2.
EncodedDataset DataOfLengths(const std::vector<int64_t>& lengths) {
  EncodedDataset data;
  data.num_labels = 2;
  data.token_offsets.push_back(0);
  data.label_offsets.push_back(0);
  for (size_t i = 0; i < lengths.size(); ++i) {
    data.ids.insert(data.ids.end(), static_cast<size_t>(lengths[i]), static_cast<int32_t>(i) + 1);
    data.type_ids.insert(data.type_ids.end(), static_cast<size_t>(lengths[i]), 1);
    data.labels.push_back(static_cast<int32_t>(i % 2));
    data.token_offsets.push_back(static_cast<int64_t>(data.ids.size()));
    data.label_offsets.push_back(static_cast<int64_t>(data.labels.size()));
  }
  return data;
}

EncodedDataset RandomData(int64_t rows) {
  Rng rng(5, 5);
  std::vector<int64_t> lengths(static_cast<size_t>(rows));
  for (int64_t& length : lengths) length = 3 + static_cast<int64_t>(rng.Below(120));
  return DataOfLengths(lengths);
}

void ExpectEveryRowOnce(const std::vector<BatchRows>& batches, int64_t rows, int64_t batch_size) {
  std::set<int64_t> seen;
  int64_t short_batches = 0;
  for (const BatchRows& batch : batches) {
    ASSERT_FALSE(batch.empty());
    ASSERT_LE(static_cast<int64_t>(batch.size()), batch_size);
    short_batches += static_cast<int64_t>(batch.size()) < batch_size;
    for (const int64_t row : batch) EXPECT_TRUE(seen.insert(row).second) << row;
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), rows);
  EXPECT_EQ(*seen.rbegin(), rows - 1);
  EXPECT_EQ(short_batches, rows % batch_size == 0 ? 0 : 1);
}

// Tokens and padding together, with one part a batch.
int64_t PaddedTokens(const EncodedDataset& data, const std::vector<BatchRows>& batches) {
  int64_t tokens = 0;
  for (const BatchRows& batch : batches) {
    tokens += PaddedLength(data, batch, 512) * static_cast<int64_t>(batch.size());
  }
  return tokens;
}

TEST(TrainingBatches, HoldEveryRowOnce) {
  const std::pair<int64_t, int64_t> cases[] = {{1, 1}, {1, 16}, {16, 16}, {17, 16}, {2000, 7}};
  for (const auto& [rows, batch_size] : cases) {
    for (const bool grouped : {false, true}) {
      SCOPED_TRACE(testing::Message() << rows << " rows by " << batch_size << " " << grouped);
      const EpochDraw draw{.batch_size = batch_size, .group_by_length = grouped, .seed = 1};
      ExpectEveryRowOnce(TrainingBatches(RandomData(rows), draw), rows, batch_size);
    }
  }
  EXPECT_THAT(TrainingBatches(DataOfLengths({}), {.batch_size = 4}), IsEmpty());
}

TEST(TrainingBatches, DependOnSeedAndEpochAlone) {
  const EncodedDataset data = RandomData(500);
  const EpochDraw draw{.batch_size = 16, .seed = 7, .epoch = 2};
  const auto batches = TrainingBatches(data, draw);
  EXPECT_EQ(TrainingBatches(data, draw), batches);
  EXPECT_NE(TrainingBatches(data, {.batch_size = 16, .seed = 8, .epoch = 2}), batches);
  EXPECT_NE(TrainingBatches(data, {.batch_size = 16, .seed = 7, .epoch = 3}), batches);
}

// Written down once, so that a change of the draws is noticed: it would change every result.
TEST(TrainingBatches, StayAsTheyAre) {
  const EncodedDataset data = DataOfLengths({5, 9, 3, 7, 1, 8});
  EXPECT_THAT(TrainingBatches(data, {.batch_size = 2, .group_by_length = true, .seed = 42}),
              ElementsAre(ElementsAre(2, 4), ElementsAre(3, 0), ElementsAre(1, 5)));
  EXPECT_THAT(TrainingBatches(data, {.batch_size = 2, .seed = 42}),
              ElementsAre(ElementsAre(5, 4), ElementsAre(3, 0), ElementsAre(1, 2)));
}

TEST(TrainingBatches, RowsOfLikeLengthMeetWhereGrouped) {
  const EncodedDataset data = RandomData(4'000);
  EpochDraw draw{.batch_size = 16, .seed = 3};
  const int64_t shuffled = PaddedTokens(data, TrainingBatches(data, draw));
  draw.group_by_length = true;
  EXPECT_LT(PaddedTokens(data, TrainingBatches(data, draw)), shuffled * 65 / 100);
}

TEST(TrainingBatches, LongestRowComesFirst) {
  const EncodedDataset data = RandomData(300);
  for (const bool grouped : {false, true}) {
    const EpochDraw draw{.batch_size = 8, .group_by_length = grouped, .seed = 1, .epoch = 1};
    for (const BatchRows& batch : TrainingBatches(data, draw)) {
      EXPECT_TRUE(std::is_sorted(batch.begin(), batch.end(), [&](int64_t a, int64_t b) {
        return data.Length(a) > data.Length(b);
      }));
    }
  }
}

TEST(EvaluationBatches, AreLongestFirstAndStable) {
  EXPECT_THAT(EvaluationBatches(DataOfLengths({5, 9, 5, 7, 1}), 2),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 2), ElementsAre(4)));
  ExpectEveryRowOnce(EvaluationBatches(RandomData(101), 10), 101, 10);
}

TEST(SplitBatch, GivesConsecutiveParts) {
  const BatchRows batch = {4, 2, 9, 7, 1};
  const std::vector<int64_t> sizes = {2, 2, 1};
  const auto parts = SplitBatch(batch, sizes);
  ASSERT_EQ(parts.size(), 3);
  EXPECT_THAT(parts[0], ElementsAre(4, 2));
  EXPECT_THAT(parts[1], ElementsAre(9, 7));
  EXPECT_THAT(parts[2], ElementsAre(1));
  EXPECT_EQ(parts[0].data(), batch.data());
}

TEST(PaddedLength, RoundsUpAndStopsAtTheModelsPositions) {
  struct Case {
    int64_t length;
    int64_t max_positions;
    int64_t expected;
  };
  const Case cases[] = {{1, 512, 16},    {16, 512, 16},   {17, 512, 32},
                        {512, 512, 512}, {100, 100, 100}, {97, 100, 100}};
  for (const auto& [length, max_positions, expected] : cases) {
    SCOPED_TRACE(length);
    const EncodedDataset data = DataOfLengths({length, 1});
    const BatchRows rows = {1, 0};
    EXPECT_EQ(PaddedLength(data, rows, max_positions), expected);
    EXPECT_LE(expected, LongestPadded({{length, 1}, {1, 1}}, length));
  }
}

TEST(PadBatch, FillsAfterEachRowsEnd) {
  EncodedDataset data = DataOfLengths({2, 3});
  data.pad_id = 99;
  const BatchRows rows = {1, 0};
  const TokenBatch batch = PadBatch(data, rows, 4);
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.length, 4);
  EXPECT_THAT(batch.ids, ElementsAre(2, 2, 2, 99, 1, 1, 99, 99));
  EXPECT_THAT(batch.type_ids, ElementsAre(1, 1, 1, 0, 1, 1, 0, 0));
  EXPECT_THAT(batch.mask, ElementsAre(1, 1, 1, 0, 1, 1, 0, 0));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0));
  EXPECT_THAT(batch.label_matrix, IsEmpty());
}

TEST(PackBatch, RowsFollowEachOtherWithoutPadding) {
  const EncodedDataset data = DataOfLengths({2, 3, 3, 1});
  const BatchRows rows = {1, 2, 0, 3};
  const TokenBatch batch = PackBatch(data, rows);
  EXPECT_EQ(batch.rows, 4);
  EXPECT_EQ(batch.length, 9);
  EXPECT_THAT(batch.ids, ElementsAre(2, 2, 2, 3, 3, 3, 1, 1, 4));
  EXPECT_EQ(batch.type_ids.size(), batch.ids.size());
  EXPECT_THAT(batch.mask, IsEmpty());
  EXPECT_EQ(batch.packed, (PackedRows{{2, 3}, {1, 2}, {1, 1}}));
  EXPECT_EQ(batch.packed, PackedRowsOf(data, rows));
  EXPECT_THAT(batch.positions, ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 0));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 3, 6, 8, 9));
  EXPECT_EQ(batch.labels, PadBatch(data, rows, 16).labels);
}

TEST(PadBatch, SeveralLabelsBecomeAMatrix) {
  EncodedDataset data = DataOfLengths({1, 1});
  data.multi_label = true;
  data.num_labels = 3;
  data.labels = {0, 2};
  data.label_offsets = {0, 2, 2};
  const BatchRows rows = {0, 1};
  const TokenBatch batch = PadBatch(data, rows, 512);
  EXPECT_THAT(batch.label_matrix, ElementsAre(1, 0, 1, 0, 0, 0));
  EXPECT_THAT(batch.labels, IsEmpty());
}

TEST(PadBatch, NumbersBecomeAMatrix) {
  EncodedDataset data = DataOfLengths({1, 2, 1});
  data.numbers = {1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f};
  const BatchRows rows = {2, 0};
  const TokenBatch batch = PadBatch(data, rows, 512);
  EXPECT_THAT(batch.label_matrix, ElementsAre(3.0f, 3.5f, 1.0f, 1.5f));
  EXPECT_THAT(batch.labels, IsEmpty());
}

TEST(PadBatch, TextsAloneHaveNoLabels) {
  EncodedDataset data = DataOfLengths({1, 2});
  data.num_labels = 0;
  data.labels.clear();
  const BatchRows rows = {0, 1};
  const TokenBatch batch = PadBatch(data, rows, 512);
  EXPECT_THAT(batch.labels, IsEmpty());
  EXPECT_THAT(batch.label_matrix, IsEmpty());
  EXPECT_EQ(batch.rows, 2);
}

}  // namespace
}  // namespace hpo::text
