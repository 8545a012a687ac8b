#include "worker/text/data/data_set_facts.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"
#include "tests/worker/text/one_letter.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(MeasureDataSet, TellsWhatMattersToMemory) {
  const TemporaryFolder folder;
  const std::string content =
      "{\"text\":\"a a\",\"pair\":\"a\",\"label\":\"yes\"}\n"
      "{\"text\":\"aaaa\",\"pair\":\"\",\"label\":\"no\"}\n"
      "{\"text\":\"a\",\"pair\":\"a a\",\"label\":\"yes\"}\n";
  const std::string path = folder.Write("train.jsonl", content);
  const std::vector<const Tokenizer*> tokenizers = {&OneLetter(), &OneLetter()};
  const auto facts = MeasureDataSet(path, "train.jsonl", tokenizers);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->name, "train.jsonl");
  EXPECT_EQ(facts->digest, Sha256Hex(content));
  EXPECT_EQ(facts->rows, 3);
  EXPECT_THAT(facts->labels, ElementsAre("no", "yes"));
  EXPECT_FALSE(facts->multi_label);
  EXPECT_TRUE(facts->pairs);
  EXPECT_THAT(facts->lengths,
              ElementsAre(Pair(OneLetter().digest(), LengthHistogram{{6, 2}, {7, 1}})));
}

// The histogram is of the whole texts: what a trial's tok.max_length leaves is the server's to say.
TEST(MeasureDataSet, LengthsAreThoseBeforeTruncation) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += "a ";
  const std::string path = folder.Write("a.csv", "text,labels\n" + text + ",x|y\n");
  const std::vector<const Tokenizer*> tokenizers = {&OneLetter()};
  const auto facts = MeasureDataSet(path, "a.csv", tokenizers);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->lengths.at(OneLetter().digest()), (LengthHistogram{{5'002, 1}}));
  EXPECT_TRUE(facts->multi_label);
}

TEST(MeasureDataSet, TextsInThePlaceOfLabelsAreTooMany) {
  const TemporaryFolder folder;
  std::string rows = "text,label\n";
  for (int i = 0; i < 10'001; ++i) absl::StrAppend(&rows, "a,", i, "\n");
  const auto facts = MeasureDataSet(folder.Write("a.csv", rows), "a.csv", {});
  EXPECT_THAT(std::string(facts.status().message()),
              HasSubstr("a.csv:10002: label: expected at most 10000 labels, got 10001"));
}

TEST(MeasureDataSet, WithoutTokenizersThereAreNoLengths) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("a.csv", "text,label\na,x\n");
  const auto facts = MeasureDataSet(path, "a.csv", {});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->lengths.empty());
  EXPECT_EQ(facts->rows, 1);
}

TEST(MeasureDataSet, TasksWithoutLabelsNeedNone) {
  const TemporaryFolder folder;
  const std::string path =
      folder.Write("a.jsonl", "{\"text\":\"a\"}\n{\"text\":\"a a\",\"v\":1}\n");
  const std::vector<const Tokenizer*> tokenizers = {&OneLetter()};
  for (const TaskKind task : {TaskKind::kTextRegression, TaskKind::kLanguageModeling}) {
    const auto facts = MeasureDataSet(path, "a.jsonl", tokenizers, task);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_TRUE(facts->labels.empty());
    EXPECT_EQ(facts->lengths.at(OneLetter().digest()), (LengthHistogram{{3, 1}, {4, 1}}));
  }
  EXPECT_FALSE(MeasureDataSet(path, "a.jsonl", tokenizers).ok());
}

TEST(MeasureDataSet, OfAspectsItCountsTheQueries) {
  const TemporaryFolder folder;
  const std::string aspect = R"({"Aspect":"a","Category":"c","VA":"1#2"})";
  const std::string path = folder.Write("a.jsonl", "{\"Text\":\"a a\",\"Quadruplet\":[" + aspect +
                                                       "]}\n{\"Text\":\"a\",\"Quadruplet\":[" +
                                                       aspect + "," + aspect + "]}\n");
  const std::vector<const Tokenizer*> tokenizers = {&OneLetter()};
  const auto facts = MeasureDataSet(path, "a.jsonl", tokenizers, TaskKind::kMultiQuery);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->rows, 2);
  EXPECT_THAT(facts->labels, ElementsAre("c"));
  EXPECT_EQ(facts->lengths.at(kQueryCounts), (LengthHistogram{{1, 1}, {2, 1}}));
  // [CLS] a [SEP] a a [SEP]; [CLS] a [SEP] a [SEP], twice
  EXPECT_EQ(facts->lengths.at(OneLetter().digest()), (LengthHistogram{{5, 2}, {6, 1}}));
  // With spans one for all aspects, one for all opinions, one for the opinions of "a", and those.
  const auto spans = MeasureDataSet(path, "a.jsonl", tokenizers, TaskKind::kMultiQuerySpans);
  ASSERT_TRUE(spans.ok()) << spans.status();
  EXPECT_EQ(spans->lengths.at(kQueryCounts), (LengthHistogram{{4, 1}, {5, 1}}));
  // [CLS] which aspects ? [SEP] a [SEP]; of "which opinions of a ?" five words
  EXPECT_EQ(spans->lengths.at(OneLetter().digest()),
            (LengthHistogram{{5, 2}, {6, 1}, {7, 2}, {8, 2}, {9, 1}, {10, 1}}));
}

TEST(MeasureDataSet, BadFilesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(MeasureDataSet(folder.path() + "/none.csv", "none.csv", {}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(MeasureDataSet(folder.Write("a.csv", ""), "a.csv", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo::text
