#include "worker/text/batching/query_set.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/worker/text/one_letter.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMaxLength = 16;

// A text of so many words, with a class and its number for each aspect.
std::string Row(int words, const std::vector<std::string>& classes) {
  std::string row = "{\"Text\":\"";
  for (int i = 0; i < words; ++i) absl::StrAppend(&row, i > 0 ? " a" : "a");
  absl::StrAppend(&row, "\",\"Quadruplet\":[");
  for (size_t i = 0; i < classes.size(); ++i) {
    absl::StrAppend(&row, i > 0 ? "," : "", R"({"Aspect":"a","Category":")", classes[i],
                    R"(","VA":")", i, "#", i + 1, "\"}");
  }
  return row + "]}\n";
}

class QuerySetTest : public testing::Test {
 protected:
  absl::StatusOr<QuerySets> Load(const std::string& train, const std::string& validation,
                                 const std::vector<std::string>& labels = {},
                                 int64_t most_aspects = 0) {
    return Load(train, validation, QueryOptions{.labels = labels, .most_aspects = most_aspects});
  }

  absl::StatusOr<QuerySets> Load(const std::string& train, const std::string& validation,
                                 const QueryOptions& options) {
    return LoadQuerySets(
        folder_.Write("train.jsonl", train), folder_.Write("valid.jsonl", validation), options,
        [](const Dataset& rows) { return EncodeDataset(rows, OneLetter(), kMaxLength); });
  }

  absl::StatusOr<QuerySets> LoadSpans(const std::string& train, const std::string& validation) {
    return Load(train, validation,
                QueryOptions{.span_tokenizer = &OneLetter(), .max_length = kMaxLength});
  }

  // Texts of 1, 3 and 2 aspects.
  QuerySet Set() {
    return Load(Row(2, {"x"}) + Row(3, {"y", "x", "y"}) + Row(9, {"x", "x"}), Row(1, {"x"}))->train;
  }

  TemporaryFolder folder_;
};

TEST_F(QuerySetTest, EveryAspectIsAQuestionAboutItsText) {
  const auto sets = Load(Row(2, {"y"}) + Row(1, {"x", "y"}), Row(1, {"x"}));
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_THAT(sets->labels, ElementsAre("x", "y", "valence", "arousal"));
  EXPECT_THAT(sets->train.offsets, ElementsAre(0, 1, 3));
  EXPECT_EQ(sets->train.num_texts(), 2);
  EXPECT_EQ(sets->train.most_queries, 2);
  // [CLS] a [SEP] a a [SEP]
  EXPECT_THAT(sets->train.queries.Ids(0), ElementsAre(2, 4, 3, 4, 4, 3));
  EXPECT_THAT(sets->train.queries.labels, ElementsAre(1, 0, 1));
  EXPECT_THAT(sets->train.numbers, ElementsAre(0, 1, 0, 1, 1, 2));
}

TEST_F(QuerySetTest, OutliersOfTheTrainingDataAreLeftOut) {
  const std::string train = Row(1, {"x", "x", "x"}) + Row(1, {"y"}) + Row(1, {"x", "y"});
  const auto sets = Load(train, Row(1, {"x", "x", "x"}), {}, /*most_aspects=*/2);
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_THAT(sets->train.offsets, ElementsAre(0, 1, 3));
  EXPECT_THAT(sets->validation.offsets, ElementsAre(0, 3));
  const auto none = Load(Row(1, {"x", "x"}), Row(1, {"x"}), {}, /*most_aspects=*/1);
  EXPECT_THAT(
      std::string(none.status().message()),
      HasSubstr("train.jsonl:1: expected texts of at most 1 aspects (aspects.max), got none"));
}

TEST_F(QuerySetTest, AClassThatNobodyKnowsIsNamedWithItsLine) {
  EXPECT_THAT(std::string(Load(Row(1, {"x"}), Row(1, {"x"}) + Row(1, {"z"})).status().message()),
              HasSubstr("valid.jsonl:2: Category: expected one of the classes"));
  EXPECT_THAT(std::string(Load(Row(1, {"x"}), Row(1, {"x"}), {"y"}).status().message()),
              HasSubstr("train.jsonl:1: Category"));
  EXPECT_THAT(std::string(Load(Row(1, {"x"}), Row(1, {"x"}), {"x", "x"}).status().message()),
              HasSubstr("expected each class once, got 'x' twice"));
}

TEST_F(QuerySetTest, APartRunsAsTheLayoutSays) {
  const QuerySet set = Set();
  const std::vector<int64_t> texts = {2, 0};
  const auto pieces = [&](QueryPadding padding, int64_t at_once) {
    return QueryPieces(set, {.padding = padding, .at_once = at_once}, texts);
  };
  EXPECT_THAT(pieces(QueryPadding::kNone, 0), ElementsAre(BatchRows{4, 5, 0}));
  EXPECT_THAT(pieces(QueryPadding::kBatch, 0), ElementsAre(BatchRows{4, 5, 0, ~0}));
  EXPECT_THAT(pieces(QueryPadding::kCorpus, 0), ElementsAre(BatchRows{4, 5, 0, ~4, ~0, ~0}));
  EXPECT_THAT(pieces(QueryPadding::kNone, 2), ElementsAre(BatchRows{4, 5}, BatchRows{0}));
  EXPECT_THAT(pieces(QueryPadding::kCorpus, 2), ElementsAre(BatchRows{4, 5}, BatchRows{0, ~4}));
  EXPECT_THAT(pieces(QueryPadding::kCorpus, 100), ElementsAre(BatchRows{4, 5, 0, ~4, ~0, ~0}));
}

TEST_F(QuerySetTest, PaddingRunsButAnswersNothing) {
  const QuerySet set = Set();
  const BatchRows piece = {4, 0, ~0};
  const TokenBatch batch = PadQueries(set, piece, 512);
  EXPECT_EQ(batch.rows, 3);
  EXPECT_EQ(batch.length, PaddedLength(set, piece, 512));
  EXPECT_THAT(batch.labels, ElementsAre(0, 0));
  EXPECT_THAT(batch.label_matrix, ElementsAre(0, 1, 0, 1));
  const auto row = [&](int64_t i) {
    return std::vector<int64_t>(batch.ids.begin() + i * batch.length,
                                batch.ids.begin() + (i + 1) * batch.length);
  };
  EXPECT_EQ(row(1), row(2));
}

// So that a batcher puts texts of like cost together, and the costliest first.
TEST_F(QuerySetTest, TextsAreAsLongAsWhatTheyAsk) {
  const QuerySet set = Set();
  const EncodedDataset texts = TextsOf(set);
  EXPECT_EQ(texts.num_rows(), 3);
  EXPECT_EQ(texts.Length(0), 6);
  EXPECT_EQ(texts.Length(1), 3 * 7);
  EXPECT_EQ(texts.Length(2), 2 * 13);
  EXPECT_EQ(QueryCounts(set), (LengthHistogram{{1, 1}, {2, 1}, {3, 1}}));
}

TEST_F(QuerySetTest, SomeOfTheTextsAskWhatTheyAsked) {
  const QuerySet all = Set();
  const QuerySet some = SelectTexts(all, std::vector<int64_t>{0, 2});
  EXPECT_THAT(some.offsets, ElementsAre(0, 1, 3));
  EXPECT_EQ(some.most_queries, 2);
  EXPECT_THAT(some.queries.labels, ElementsAre(0, 0, 0));
  EXPECT_THAT(some.numbers, ElementsAre(0, 1, 0, 1, 1, 2));
  EXPECT_EQ(TextsOf(some).Length(1), TextsOf(all).Length(2));
  const QuerySet middle = SelectTexts(all, std::vector<int64_t>{1});
  const QueryLayout layout{.padding = QueryPadding::kCorpus};
  const auto batch_of = [&layout](const QuerySet& set, int64_t text) {
    return PadQueries(set, QueryPieces(set, layout, std::vector<int64_t>{text}).front(), 512);
  };
  EXPECT_EQ(batch_of(middle, 0).ids, batch_of(all, 1).ids);
  EXPECT_EQ(batch_of(middle, 0).label_matrix, batch_of(all, 1).label_matrix);
}

// A text in which "aa" is an aspect and "a" its opinion.
constexpr const char* kSpanRow =
    R"({"Text":"a aa","Quadruplet":[{"Aspect":"aa","Category":"x","Opinion":"a","VA":"1#2"}]})"
    "\n";

TEST_F(QuerySetTest, SpansAreAskedForBeforeClasses) {
  const auto sets = LoadSpans(kSpanRow, kSpanRow);
  ASSERT_TRUE(sets.ok()) << sets.status();
  const QuerySet& set = sets->train;
  ASSERT_TRUE(set.AsksForSpans());
  EXPECT_THAT(set.offsets, ElementsAre(0, 5));
  EXPECT_EQ(set.most_queries, 5);
  EXPECT_EQ(set.spans.queries.size(), 5u);
  EXPECT_THAT(set.queries.labels, ElementsAre(kNoClass, kNoClass, kNoClass, kNoClass, 0));
  EXPECT_THAT(set.numbers, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 1, 2));
  EXPECT_FALSE(Set().AsksForSpans());
}

TEST_F(QuerySetTest, ABatchSaysWhichTokensBeginAndEndSpans) {
  const auto sets = LoadSpans(kSpanRow, kSpanRow);
  ASSERT_TRUE(sets.ok()) << sets.status();
  // [CLS] which aspects ? [SEP] a a ##a [SEP]; the class's query; padding
  const TokenBatch batch = PadQueries(sets->train, BatchRows{0, 4, ~0}, 512);
  ASSERT_EQ(batch.length, 16);
  EXPECT_THAT(batch.labels, ElementsAre(kNoClass, 0, kNoClass));
  EXPECT_THAT(batch.label_matrix, ElementsAre(0, 0, 1, 2, 0, 0));
  std::vector<float> weights(3 * 16, 0.0f);
  for (const size_t token : {5, 6, 7}) weights[token] = 1.0f / 6;
  EXPECT_EQ(batch.span_weights, weights);
  std::vector<float> targets(3 * 16 * 2, 0.0f);
  targets[2 * 6] = 1.0f;
  targets[2 * 7 + 1] = 1.0f;
  EXPECT_EQ(batch.span_targets, targets);
}

TEST_F(QuerySetTest, SomeOfTheTextsKeepTheirSpans) {
  const auto sets = LoadSpans(Row(1, {"x"}) + kSpanRow, kSpanRow);
  ASSERT_TRUE(sets.ok()) << sets.status();
  const QuerySet some = SelectTexts(sets->train, std::vector<int64_t>{1});
  EXPECT_EQ(some.spans.queries, sets->validation.spans.queries);
  EXPECT_EQ(some.spans.phrases, sets->train.spans.phrases);
  EXPECT_EQ(some.spans.unplaced, sets->train.spans.unplaced);
}

TEST_F(QuerySetTest, AFileWithoutSpansIsRefusedWhereTheyAreAskedFor) {
  // An aspect, but no opinion.
  EXPECT_THAT(std::string(LoadSpans(kSpanRow, Row(1, {"x"})).status().message()),
              HasSubstr("valid.jsonl: Opinion: expected at least one that occurs in its Text"));
}

TEST(ParseQueryPadding, KnowsThreeWords) {
  EXPECT_EQ(*ParseQueryPadding("none"), QueryPadding::kNone);
  EXPECT_EQ(*ParseQueryPadding("batch"), QueryPadding::kBatch);
  EXPECT_EQ(*ParseQueryPadding("corpus"), QueryPadding::kCorpus);
  EXPECT_EQ(ParseQueryPadding("all").status().message(),
            "expected none, batch or corpus, got 'all'");
}

}  // namespace
}  // namespace hpo::text
