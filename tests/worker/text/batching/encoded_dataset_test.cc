#include "worker/text/batching/encoded_dataset.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/text/golden_tokenizers.h"
#include "worker/text/batching/batcher.h"
#include "worker/text/tokenizers/families/wordpiece.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<PipelineTokenizer> LettersTokenizer() {
  return MakeBertTokenizer(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c"}, .digest = "letters"}, {});
}

// Of several labels; the second row is empty.
Dataset LetterPairs() {
  return {.path = "f",
          .label_names = {"x", "y", "z"},
          .multi_label = true,
          .pairs = true,
          .rows = {{"a b", "c", {0, 2}}, {"", "", {}}, {"c", "b a", {1}}}};
}

TEST(EncodeDataset, KeepsRowsApart) {
  const auto data = EncodeDataset(LetterPairs(), *LettersTokenizer(), 16);
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->num_rows(), 3);
  EXPECT_THAT(data->Ids(0), ElementsAre(2, 4, 5, 3, 6, 3));
  EXPECT_THAT(data->TypeIds(0), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(data->Ids(1), ElementsAre(2, 3, 3));
  EXPECT_THAT(data->Ids(2), ElementsAre(2, 6, 3, 5, 4, 3));
  EXPECT_THAT(data->Labels(0), ElementsAre(0, 2));
  EXPECT_THAT(data->Labels(1), IsEmpty());
  EXPECT_THAT(data->Labels(2), ElementsAre(1));
  EXPECT_EQ(data->Length(2), 6);
  EXPECT_EQ(data->num_labels, 3);
  EXPECT_TRUE(data->multi_label);
  EXPECT_EQ(data->pad_id, 0);
}

TEST(EncodeDataset, TruncatesEveryRow) {
  const Dataset dataset{.path = "f",
                        .label_names = {"x", "y"},
                        .rows = {{"a b c a b c", std::nullopt, {0}}, {"a", std::nullopt, {1}}}};
  const auto data = EncodeDataset(dataset, *LettersTokenizer(), 4);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->Ids(0), ElementsAre(2, 4, 5, 3));
  EXPECT_THAT(data->Ids(1), ElementsAre(2, 4, 3));
}

TEST(EncodeDataset, RowsThatLostTokensAreCounted) {
  const Dataset dataset{.path = "f",
                        .label_names = {"x"},
                        .rows = {{"a b c", std::nullopt, {0}},
                                 {"a b", std::nullopt, {0}},
                                 {"a", std::nullopt, {0}},
                                 {"c b a c", std::nullopt, {0}}}};
  const auto count = [](const Dataset& rows, int64_t max_length) {
    const auto tokenizer = LettersTokenizer();
    const auto data = EncodeDataset(rows, *tokenizer, max_length);
    return CountTruncated(rows, data.value(), *tokenizer, max_length);
  };
  EXPECT_EQ(count(dataset, 4), 2) << "a b just fits";
  EXPECT_EQ(count(dataset, 3), 3);
  EXPECT_EQ(count(dataset, 6), 0);
  EXPECT_EQ(count(LetterPairs(), 5), 2);
  EXPECT_EQ(count(LetterPairs(), 6), 0);
}

TEST(EncodeDataset, WithoutRowsHasNone) {
  const auto data = EncodeDataset({}, *LettersTokenizer(), 4);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->num_rows(), 0);
  EXPECT_EQ(EncodedDataset{}.num_rows(), 0);
}

TEST(EncodeDataset, NeedsRoomForAToken) {
  const std::pair<bool, int64_t> cases[] = {{false, 2}, {true, 3}, {false, 0}, {true, -1}};
  for (const auto& [pairs, max_length] : cases) {
    SCOPED_TRACE(max_length);
    const Dataset dataset{.path = "f", .pairs = pairs};
    const auto data = EncodeDataset(dataset, *LettersTokenizer(), max_length);
    EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(data.status().message()), HasSubstr("tok.max_length"));
  }
}

TEST(EncodedDataset, SelectedRowsKeepAllThatIsTheirs) {
  const auto data = EncodeDataset(LetterPairs(), *LettersTokenizer(), 16);
  ASSERT_TRUE(data.ok()) << data.status();
  const EncodedDataset some = SelectRows(*data, std::vector<int64_t>{2, 0});
  ASSERT_EQ(some.num_rows(), 2);
  EXPECT_THAT(some.Ids(0), ElementsAre(2, 6, 3, 5, 4, 3));
  EXPECT_THAT(some.TypeIds(1), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(some.Labels(0), ElementsAre(1));
  EXPECT_THAT(some.Labels(1), ElementsAre(0, 2));
  EXPECT_EQ(some.num_labels, 3);
  EXPECT_TRUE(some.multi_label);
  EXPECT_EQ(SelectRows(*data, {}).num_rows(), 0);
}

TEST(EncodedDataset, LabelsThatNoRowHasAreAbsent) {
  const auto data = EncodeDataset(LetterPairs(), *LettersTokenizer(), 16);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(AbsentLabels(*data), IsEmpty());
  EXPECT_THAT(AbsentLabels(SelectRows(*data, std::vector<int64_t>{2})), ElementsAre(0, 2));
  EXPECT_THAT(AbsentLabels(SelectRows(*data, {})), ElementsAre(0, 1, 2));
}

TEST(EncodedDataset, SelectedRowsKeepTheirNumbers) {
  const Dataset dataset{.path = "f",
                        .label_names = {"v", "a"},
                        .rows = {{"a", std::nullopt, {}, {1.0f, 2.0f}},
                                 {"b", std::nullopt, {}, {3.0f, 4.0f}},
                                 {"c", std::nullopt, {}, {5.0f, 6.0f}}}};
  const auto data = EncodeDataset(dataset, *LettersTokenizer(), 16);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(SelectRows(*data, std::vector<int64_t>{0, 2}).numbers,
              ElementsAre(1.0f, 2.0f, 5.0f, 6.0f));
}

}  // namespace
}  // namespace hpo::text
