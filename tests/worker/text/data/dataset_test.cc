#include "worker/text/data/dataset.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Row(const std::string& label) {
  return "{\"text\":\"t\",\"label\":\"" + label + "\"}\n";
}

std::string MultiRow(const std::string& labels) {
  return "{\"text\":\"t\",\"labels\":[" + labels + "]}\n";
}

class LoadTaskDataTest : public testing::Test {
 protected:
  absl::StatusOr<TaskData> Load(const std::string& train, const std::string& validation,
                                const std::vector<std::string>& labels = {}) {
    return LoadTaskData(folder_.Write("train.jsonl", train),
                        folder_.Write("valid.jsonl", validation), labels);
  }

  void ExpectRefused(const std::string& train, const std::string& validation,
                     const std::vector<std::string>& labels, const std::string& expected) {
    SCOPED_TRACE(expected);
    const auto data = Load(train, validation, labels);
    ASSERT_FALSE(data.ok());
    EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(data.status().message()), HasSubstr(expected));
  }

  TemporaryFolder folder_;
};

TEST_F(LoadTaskDataTest, LabelsAreThoseOfTheTrainingDataSorted) {
  const auto data = Load(Row("yes") + Row("no") + Row("yes"), Row("yes"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->train.label_names, ElementsAre("no", "yes"));
  EXPECT_EQ(data->validation.label_names, data->train.label_names);
  EXPECT_THAT(data->train.rows[0].labels, ElementsAre(1));
  EXPECT_THAT(data->train.rows[1].labels, ElementsAre(0));
  EXPECT_THAT(data->validation.rows[0].labels, ElementsAre(1));
}

TEST_F(LoadTaskDataTest, StudyDecidesTheOrderOfLabels) {
  const auto data = Load(Row("yes") + Row("no"), Row("yes"), {"yes", "no"});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->validation.rows[0].labels, ElementsAre(0));
}

TEST_F(LoadTaskDataTest, SeveralLabelsComeAscending) {
  const auto data =
      Load(MultiRow("\"c\",\"a\"") + MultiRow("\"b\"") + MultiRow(""), MultiRow("\"b\",\"c\""));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE(data->train.multi_label);
  EXPECT_THAT(data->train.rows[0].labels, ElementsAre(0, 2));
  EXPECT_THAT(data->train.rows[2].labels, IsEmpty());
  EXPECT_THAT(data->validation.rows[0].labels, ElementsAre(1, 2));
}

TEST_F(LoadTaskDataTest, LabelsThatOneSideLacksAreNamed) {
  ExpectRefused(Row("yes") + Row("no"), Row("no") + Row("maybe"), {},
                "/valid.jsonl:2: label: expected one of the labels of " + folder_.path() +
                    "/train.jsonl (no, yes), got 'maybe'");
  ExpectRefused(Row("yes") + Row("no"), Row("no"), {"yes", "other"},
                "/train.jsonl:2: expected rows with every label of trainer.labels, got none with "
                "'other'");
  ExpectRefused(Row("yes") + Row("no"), Row("no"), {"yes"},
                "/train.jsonl:2: label: expected one of trainer.labels (yes), got 'no'");
  ExpectRefused(Row("yes") + Row("no"), Row("no"), {"yes", "no", "yes"},
                "trainer.labels: expected each label once, got 'yes' twice");
}

TEST_F(LoadTaskDataTest, OfSeveralLabelsOneMayBeTooRareToBeTrained) {
  const auto data = Load(MultiRow("\"a\"") + MultiRow(""), MultiRow("\"rare\""), {"a", "rare"});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->train.label_names, ElementsAre("a", "rare"));
  EXPECT_THAT(data->validation.rows[0].labels, ElementsAre(1));
}

TEST_F(LoadTaskDataTest, OneLabelAloneTeachesNothing) {
  ExpectRefused(Row("yes") + Row("yes"), Row("yes"), {},
                "/train.jsonl:2: expected at least two labels, got 'yes'");
  EXPECT_TRUE(Load(MultiRow("\"a\"") + MultiRow(""), MultiRow("")).ok());
}

TEST_F(LoadTaskDataTest, BothFilesAreOfOneKind) {
  ExpectRefused(Row("yes") + Row("no"), MultiRow("\"no\""), {},
                "/valid.jsonl:1: expected 'label' as in");
  ExpectRefused(Row("yes") + Row("no"), "\n{\"text\":\"a\",\"pair\":\"b\",\"label\":\"no\"}", {},
                "/valid.jsonl:2: pair: expected none as in");
}

TEST_F(LoadTaskDataTest, MissingFilesAreNamed) {
  const std::string train = folder_.Write("train.jsonl", Row("a") + Row("b"));
  const auto data = LoadTaskData(train, folder_.path() + "/none.jsonl", {});
  EXPECT_EQ(data.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(data.status().message()), HasSubstr("/none.jsonl"));
}

TEST_F(LoadTaskDataTest, LongLabelListsAreCutInErrors) {
  std::string train;
  for (int i = 0; i < 50; ++i) train += Row("label" + std::to_string(i + 100));
  ExpectRefused(train, Row("x"), {}, "label107, ... (50 in all)), got 'x'");
}

TEST(SortedLabels, IntegersAreSortedByValue) {
  const auto sorted = [](const std::vector<std::string>& labels) {
    DataFile file;
    for (const std::string& label : labels) {
      file.rows.push_back({.text = "", .pair = std::nullopt, .labels = {label}, .line = 1});
    }
    return SortedLabels(file);
  };
  EXPECT_THAT(sorted({"10", "2", "-1", "2"}), ElementsAre("-1", "2", "10"));
  EXPECT_THAT(sorted({"10", "2", "a"}), ElementsAre("10", "2", "a"));
  EXPECT_THAT(sorted({}), IsEmpty());
}

// 60 rows "no" and 5 rows "yes", told apart by their texts.
TEST(TaskData, SaysHowAnUnknownLabelDiffers) {
  const TemporaryFolder folder;
  std::string numbers = "text,label\n";
  for (int i = 0; i < 30; ++i) absl::StrAppend(&numbers, "t,", i, ".5\n");
  const std::pair<std::pair<std::string, std::string>, const char*> cases[] = {
      {{"text,label\na,x\nb,y\n", " X"}, "differs from 'x' in spaces or capital letters alone"},
      {{"text,label\na,1\nb,0\n", "1.0"}, "got '1.0'; it is the number '1' in another form"},
      {{numbers, "0.25"}, "need the study's trainer.task to be text-regression"},
      {{"text,label\na,x\nb,y\n", "a text of more than forty bytes, not a label"},
       "the columns of text and label are perhaps exchanged"},
      {{"text,label\na,x\nb,y\n", "z"}, "(x, y), got 'z'"},
  };
  for (const auto& [files, expected] : cases) {
    const auto data =
        LoadTaskData(folder.Write("train.csv", files.first),
                     folder.Write("valid.csv", "text,label\na,\"" + files.second + "\"\n"), {});
    EXPECT_THAT(std::string(data.status().message()), HasSubstr(expected));
  }
  const std::string none = folder.Write("none.csv", "text,labels\na,\nb,\n");
  EXPECT_THAT(std::string(LoadTaskData(none, none, {}).status().message()),
              HasSubstr("none.csv:3: labels: expected a label in one of the rows, got none"));
}

Dataset SixtyFive(bool multi_label) {
  Dataset dataset;
  dataset.multi_label = multi_label;
  for (int32_t i = 0; i < 65; ++i) {
    dataset.rows.push_back(
        {.text = std::to_string(i), .pair = {}, .labels = {i % 13 == 0 ? 1 : 0}});
  }
  return dataset;
}

TEST(ShareOf, IsThatShareOfEachLabelInOrder) {
  const Dataset all = SixtyFive(/*multi_label=*/false);
  const std::vector<int64_t> some = ShareOf(all, 0.1, 7);
  ASSERT_EQ(some.size(), 7u);  // 6 of 60, and 1 of 5
  int64_t yes = 0;
  for (size_t i = 0; i < some.size(); ++i) {
    yes += all.rows.at(static_cast<size_t>(some[i])).labels[0];
    if (i == 0) continue;
    EXPECT_LT(some[i - 1], some[i]);
  }
  EXPECT_EQ(yes, 1);
}

TEST(ShareOf, TheSeedDecidesWhich) {
  const Dataset all = SixtyFive(false);
  EXPECT_EQ(ShareOf(all, 0.3, 7), ShareOf(all, 0.3, 7));
  EXPECT_NE(ShareOf(all, 0.3, 7), ShareOf(all, 0.3, 8));
}

TEST(ShareOf, SeveralLabelsARowAreDrawnTogether) {
  const Dataset all = SixtyFive(/*multi_label=*/true);
  EXPECT_EQ(ShareOf(all, 0.1, 7).size(), 7u);
  EXPECT_EQ(ShareOf(all, 1e-9, 7).size(), 1u);
}

TEST(ShareOf, AllOfItIsEveryRow) {
  const std::vector<int64_t> all = ShareOf(SixtyFive(false), 1.0, 7);
  ASSERT_EQ(all.size(), 65u);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int64_t>(i));
}

TEST(ShareOf, RowsWithoutLabelsAreDrawnTogether) {
  const std::vector<int64_t> some = ShareOf(65, 0.1, 7);
  EXPECT_EQ(some, ShareOf(SixtyFive(/*multi_label=*/true), 0.1, 7));
  EXPECT_NE(some, ShareOf(65, 0.1, 8));
}

class LoadRegressionDataTest : public LoadTaskDataTest {
 protected:
  absl::StatusOr<TaskData> Load(const std::string& train, const std::string& validation,
                                const std::vector<std::string>& columns) {
    return LoadRegressionData(folder_.Write("train.jsonl", train),
                              folder_.Write("valid.jsonl", validation), columns);
  }
};

TEST_F(LoadRegressionDataTest, ColumnsAreNumbersInTheirOrder) {
  const auto data = Load("{\"text\":\"t\",\"v\":1,\"a\":-2.5}\n",
                         "{\"text\":\"u\",\"a\":0,\"v\":3}\n", {"a", "v"});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->train.label_names, ElementsAre("a", "v"));
  EXPECT_THAT(data->train.rows[0].numbers, ElementsAre(-2.5f, 1.0f));
  EXPECT_THAT(data->validation.rows[0].numbers, ElementsAre(0.0f, 3.0f));
  EXPECT_THAT(data->train.rows[0].labels, IsEmpty());
}

TEST_F(LoadRegressionDataTest, WithoutColumnsTheNumberIsTheLabel) {
  const auto data = Load("{\"text\":\"t\",\"label\":1.5}\n", "{\"text\":\"u\",\"label\":2}\n", {});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->train.label_names, ElementsAre("label"));
  EXPECT_THAT(data->train.rows[0].numbers, ElementsAre(1.5f));
}

TEST_F(LoadRegressionDataTest, WhatIsNoNumberIsNamed) {
  const std::string good = "{\"text\":\"t\",\"v\":1}\n";
  const auto message = [&](const std::string& train, const std::vector<std::string>& columns) {
    return std::string(Load(train, good, columns).status().message());
  };
  EXPECT_THAT(message(good + "{\"text\":\"t\",\"v\":\"1\"}\n", {"v"}),
              HasSubstr("train.jsonl:2: v: expected a number, got the string \"1\""));
  EXPECT_THAT(message("{\"text\":\"t\",\"v\":-1e39}\n", {"v"}),
              HasSubstr("train.jsonl:1: v: expected a number within float32, got -1e+39"));
  EXPECT_THAT(message(good, {"v", "v"}), HasSubstr("expected each label once, got 'v' twice"));
  EXPECT_THAT(message(good, {"text"}), HasSubstr("expected fields of numbers, got 'text'"));
  EXPECT_THAT(message("{\"text\":\"t\",\"pair\":\"p\",\"v\":1}\n", {"v"}),
              HasSubstr("pair: expected one as in"));
}

TEST(LoadPlainTextsTest, TakesTextsAndNothingElse) {
  const TemporaryFolder folder;
  const std::string train =
      folder.Write("train.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\",\"label\":1}\n");
  const auto data = LoadPlainTexts(train, folder.Write("valid.csv", "text\nc\n"));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->train.rows[1].text, "b");
  EXPECT_EQ(data->train.rows[1].line, 2);
  EXPECT_THAT(data->train.rows[1].labels, IsEmpty());
  EXPECT_EQ(data->validation.rows[0].text, "c");
  const std::string pairs = folder.Write("pairs.jsonl", "{\"text\":\"a\",\"pair\":\"b\"}\n");
  EXPECT_THAT(std::string(LoadPlainTexts(pairs, pairs).status().message()),
              HasSubstr("pair: expected texts alone, got pairs"));
}

}  // namespace
}  // namespace hpo::text
