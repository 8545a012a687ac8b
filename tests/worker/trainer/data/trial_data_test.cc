#include "worker/trainer/data/trial_data.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"

namespace hpo::trainer {
namespace {

void ExpectEqual(const text::EncodedDataset& a, const text::EncodedDataset& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.type_ids, b.type_ids);
  EXPECT_EQ(a.token_offsets, b.token_offsets);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.label_offsets, b.label_offsets);
  EXPECT_EQ(a.pad_id, b.pad_id);
}

class CachedTrialDataTest : public testing::Test {
 protected:
  absl::StatusOr<TextData> Load(const TrainerJob& job, const text::TokenCache& cache) {
    const auto options = ReadTrainingOptions(job.task.params, job.task.seed);
    EXPECT_TRUE(options.ok()) << options.status();
    const auto folder = OpenModelFolder(job, *options);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return LoadTextData(job, *options, *folder, cache);
  }

  void ExpectSameWithCache(const TrainerJob& job) {
    const auto plain = Load(job, text::TokenCache());
    const auto first = Load(job, cache_);
    const auto second = Load(job, cache_);
    ASSERT_TRUE(plain.ok() && first.ok() && second.ok());
    for (const TextData* data : {&*first, &*second}) {
      ExpectEqual(data->train, plain->train);
      ExpectEqual(data->validation, plain->validation);
      EXPECT_EQ(data->labels, plain->labels);
    }
  }

  int64_t NumFiles() const {
    const std::filesystem::directory_iterator files(folder_);
    return std::distance(begin(files), end(files));
  }

  const TinyTrial trial_;
  const std::string folder_ = trial_.Path("tokens");
  const text::TokenCache cache_{folder_, MiB(1)};
};

TEST(OpenModelFolder, WhatCannotBeReadIsNamedWithTheReason) {
  const TinyTrial trial;
  TrainerJob job = trial.Job();
  job.model_path = trial.Path("empty");
  std::filesystem::create_directories(job.model_path);
  const auto options = ReadTrainingOptions(job.task.params, job.task.seed);
  ASSERT_TRUE(options.ok()) << options.status();
  const absl::Status missing = OpenModelFolder(job, *options).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_EQ(missing.message(), job.model_path + "/config.json: No such file or directory");
  std::filesystem::create_directories(job.model_path + "/config.json");
  EXPECT_EQ(OpenModelFolder(job, *options).status().message(),
            job.model_path + "/config.json: Is a directory");
}

TEST_F(CachedTrialDataTest, TrialsGetTheSameRows) {
  ExpectSameWithCache(trial_.Job());
  EXPECT_EQ(NumFiles(), 2);
}

TEST_F(CachedTrialDataTest, AShareOfTheRowsComesFromTheWholeFile) {
  TrainerJob job = trial_.Job();
  for (const uint64_t seed : {1u, 2u}) {
    job.task.seed = seed;
    job.task.params["data.subset"] = 0.5;
    ExpectSameWithCache(job);
  }
  EXPECT_EQ(NumFiles(), 2);
}

TEST_F(CachedTrialDataTest, AShareOfTheTextsComesFromTheWholeFile) {
  TrainerJob job = trial_.Job();
  job.task.trainer.task = "multi-query";
  job.task.trainer.labels.clear();
  std::string texts;
  for (int i = 0; i < 9; ++i) {
    absl::StrAppend(&texts, R"({"Text":"w)", i % 4, R"(","Quadruplet":[)",
                    R"({"Aspect":"w1","Category":"a","VA":"1#1"},)",
                    R"({"Aspect":"w2","Category":"b","VA":")", i, "#1\"}]}\n");
  }
  job.task.trainer.train = job.task.trainer.validation = trial_.Write("aspects.jsonl", texts);
  const auto all = Load(job, cache_);
  ASSERT_TRUE(all.ok()) << all.status();
  job.task.params["data.subset"] = 0.5;
  for (const uint64_t seed : {1u, 2u}) {
    job.task.seed = seed;
    ExpectSameWithCache(job);
    const auto some = Load(job, cache_);
    ASSERT_TRUE(some.ok()) << some.status();
    EXPECT_EQ(some->train.num_rows(), 5);
    EXPECT_EQ(some->train_queries->queries.num_rows(), 10);
    EXPECT_NE(some->train_queries->numbers, all->train_queries->numbers);
    EXPECT_EQ(some->validation.num_rows(), 9);
    EXPECT_EQ(some->labels, all->labels);
  }
  EXPECT_EQ(NumFiles(), 1);
}

TEST_F(CachedTrialDataTest, LengthsAreApart) {
  TrainerJob job = trial_.Job();
  ExpectSameWithCache(job);
  job.task.params["tok.max_length"] = int64_t{8};
  ExpectSameWithCache(job);
  EXPECT_EQ(NumFiles(), 4);
}

TEST_F(CachedTrialDataTest, ABadRowIsNamedWhateverIsCached) {
  const TrainerJob job = trial_.Job();
  ExpectSameWithCache(job);
  trial_.Write("train.jsonl", TinyRows(48, 1) + "{\"text\":\"w1\",\"label\":\"z\"}\n");
  const absl::Status refused = Load(job, cache_).status();
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("train.jsonl:49: label"));
}

}  // namespace
}  // namespace hpo::trainer
