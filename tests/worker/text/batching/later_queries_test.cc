#include "worker/text/batching/later_queries.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/text/tokenizers/families/wordpiece.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;

const Tokenizer& TwoLetters() {
  static const auto* const tokenizer = new std::unique_ptr<PipelineTokenizer>(MakeBertTokenizer(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"}, .digest = "letters"}, {}));
  return **tokenizer;
}

TEST(EncodeLater, TellsWhereTheTextsAre) {
  const std::vector<LaterQuestion> questions = {{.words = "a", .text = "b b"},
                                                {.words = "a a", .text = "b b b"}};
  LaterQueries later = EncodeLater(questions, TwoLetters(), /*max_length=*/7, /*one_type=*/false);
  ASSERT_EQ(later.queries.num_rows(), 2);
  EXPECT_THAT(later.queries.Ids(0), ElementsAre(2, 4, 3, 5, 5, 3));
  EXPECT_THAT(later.queries.TypeIds(0), ElementsAre(0, 0, 0, 1, 1, 1));
  // The second text loses a token.
  EXPECT_THAT(later.queries.Ids(1), ElementsAre(2, 4, 4, 3, 5, 5, 3));
  EXPECT_THAT(later.texts, ElementsAre(TokenRange{3, 5}, TokenRange{4, 6}));
  later = EncodeLater(questions, TwoLetters(), /*max_length=*/7, /*one_type=*/true);
  EXPECT_THAT(later.queries.TypeIds(0), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(QueryRoom, GivesTheMostRowsOfAPieceAtLeastThatLong) {
  QueryRoom room;
  EXPECT_EQ(room.most_tokens(), 0);
  room.Add(4, 32);
  room.Add(2, 32);
  room.Add(8, 16);
  room.Add(1, 48);
  EXPECT_EQ(room.most_tokens(), 48);
  EXPECT_EQ(room.RowsOf(48), 1);
  EXPECT_EQ(room.RowsOf(33), 1);
  EXPECT_EQ(room.RowsOf(32), 4);
  EXPECT_EQ(room.RowsOf(16), 8);
  EXPECT_EQ(room.RowsOf(1), 8);
}

EncodedDataset OfLengths(const std::vector<int64_t>& lengths) {
  EncodedDataset queries{.token_offsets = {0}};
  for (const int64_t length : lengths) {
    queries.token_offsets.push_back(queries.token_offsets.back() + length);
    queries.ids.resize(static_cast<size_t>(queries.token_offsets.back()), 4);
    queries.type_ids.resize(queries.ids.size(), 0);
  }
  return queries;
}

TEST(PiecesWithin, AreNeverLargerThanWhatRan) {
  QueryRoom room;
  room.Add(3, 16);
  room.Add(2, 32);
  const EncodedDataset queries = OfLengths({5, 20, 16, 30, 17, 9, 3, 4});
  const std::vector<BatchRows> pieces = PiecesWithin(room, queries, /*max_positions=*/64);
  // 30 and 20 tokens; 17 and 16; then those of up to 16.
  EXPECT_THAT(pieces, ElementsAre(ElementsAre(3, 1), ElementsAre(4, 2), ElementsAre(5, 0, 7),
                                  ElementsAre(6)));
  EXPECT_TRUE(PiecesWithin(room, OfLengths({}), 64).empty());
}

// Padding goes no further than the model has positions.
TEST(PiecesWithin, KnowsTheModelsPositions) {
  QueryRoom room;
  room.Add(2, 20);
  EXPECT_THAT(PiecesWithin(room, OfLengths({18, 18, 18}), /*max_positions=*/20),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

}  // namespace
}  // namespace hpo::text
