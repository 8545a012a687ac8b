#include "worker/agent/attempt/kept_models.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/files/read_file.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"
#include "tests/fakes/full_disk.h"
#include "worker/agent/attempt/runs_folder.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

const ModelRank kScore = {.objective = {.metric = "score"}, .constraints = {}};

class KeptModelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ =
        fs::path(::testing::TempDir()) /
        (std::string("kept-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_ / "runs/s");
  }
  void TearDown() override { fs::remove_all(root_); }

  // An attempt's folder with a model and a log.
  fs::path Attempt(int number) {
    const fs::path folder = root_ / "runs/s" / std::to_string(number);
    fs::create_directories(folder / "best");
    std::ofstream(folder / "best/model.safetensors") << "weights";
    std::ofstream(folder / "trainer.log") << "log";
    return folder;
  }
  void Complete(int number, double value, Direction direction = Direction::kMaximize,
                int64_t num_kept = 1) {
    const fs::path folder = Attempt(number);
    Kept(num_kept).Settle(
        "s", folder.string(),
        Completed{.metrics = {{"score", value}}, .model_path = (folder / "best").string()},
        {.objective = {.metric = "score", .direction = direction}, .constraints = {}});
  }
  KeptModels Kept(std::optional<int64_t> num_kept = 1) {
    return {(root_ / "runs").string(), num_kept};
  }
  bool HasModel(int number) {
    return fs::exists(root_ / "runs/s" / std::to_string(number) / "best/model.safetensors");
  }
  bool HasLog(int number) {
    return fs::exists(root_ / "runs/s" / std::to_string(number) / "trainer.log");
  }

  fs::path root_;
};

TEST_F(KeptModelsTest, TheBestStaysWhateverTheOrder) {
  Complete(0, 0.5);
  EXPECT_TRUE(HasModel(0));
  Complete(1, 0.7);
  EXPECT_FALSE(HasModel(0));
  EXPECT_TRUE(HasModel(1));
  Complete(2, 0.6);
  EXPECT_TRUE(HasModel(1));
  EXPECT_FALSE(HasModel(2));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(HasLog(i)) << i;
}

TEST_F(KeptModelsTest, TheBestFewStay) {
  const double values[] = {0.5, 0.9, 0.7, 0.8, 0.6};
  for (int i = 0; i < 5; ++i) Complete(i, values[i], Direction::kMaximize, /*num_kept=*/3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(HasModel(i), values[i] >= 0.7) << i;
  Complete(5, 0.75, Direction::kMaximize, /*num_kept=*/2);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(HasModel(i), i == 1 || i == 3) << i << ": fewer are kept";
}

TEST_F(KeptModelsTest, TheRecordOfOneModelAloneIsStillRead) {
  Attempt(0);
  std::ofstream(root_ / "runs/s/best.json")
      << R"({"value": 0.5, "model_path": ")" << (root_ / "runs/s/0/best").string() << "\"}";
  Complete(1, 0.4);
  EXPECT_TRUE(HasModel(0));
  EXPECT_FALSE(HasModel(1));
  Complete(2, 0.6);
  EXPECT_FALSE(HasModel(0));
}

TEST_F(KeptModelsTest, ADemonstrationIsNeverTheBest) {
  Complete(0, 0.5);
  const fs::path demonstration = Attempt(1);
  Kept().Discard(demonstration.string());
  EXPECT_TRUE(HasModel(0));
  EXPECT_FALSE(HasModel(1));
  EXPECT_TRUE(HasLog(1));
  Kept(std::nullopt).Discard(Attempt(2).string());
  EXPECT_TRUE(HasModel(2));
}

TEST_F(KeptModelsTest, LessIsBetterWhenMinimised) {
  Complete(0, 0.5, Direction::kMinimize);
  Complete(1, 0.7, Direction::kMinimize);
  EXPECT_TRUE(HasModel(0));
  EXPECT_FALSE(HasModel(1));
}

TEST_F(KeptModelsTest, OfEqualsTheEarlierStays) {
  Complete(0, 0.5);
  Complete(1, 0.5);
  EXPECT_TRUE(HasModel(0));
  EXPECT_FALSE(HasModel(1));
}

TEST_F(KeptModelsTest, WhatViolatesAConstraintGoesBeforeWhatDoesNot) {
  const ModelRank rank = {.objective = {.metric = "score"},
                          .constraints = {{.metric = "ms", .at_most = 50.0}}};
  const std::pair<Metrics, int> settled[] = {// and which model is there then
                                             {{{"score", 0.9}}, 0},
                                             {{{"score", 0.8}, {"ms", 90.0}}, 1},
                                             {{{"score", 0.1}, {"ms", 50.0}}, 2},
                                             {{{"score", 0.7}, {"ms", 60.0}}, 2},
                                             {{{"score", 0.2}, {"ms", 10.0}}, 4}};
  int number = 0;
  for (const auto& [metrics, kept] : settled) {
    const fs::path folder = Attempt(number++);
    Kept().Settle("s", folder.string(),
                  Completed{.metrics = metrics, .model_path = (folder / "best").string()}, rank);
    for (int i = 0; i < number; ++i) EXPECT_EQ(HasModel(i), i == kept) << i;
  }
}

TEST_F(KeptModelsTest, WhatCannotBeComparedStays) {
  Complete(0, 0.5);
  Complete(1, std::nan(""));
  const fs::path folder = Attempt(2);
  Kept().Settle("s", folder.string(),
                Completed{.metrics = {{"loss", 1.0}}, .model_path = (folder / "best").string()},
                kScore);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(HasModel(i)) << i;
}

TEST_F(KeptModelsTest, OtherEndsKeepTheirLogAlone) {
  const fs::path folder = Attempt(0);
  Kept().Settle("s", folder.string(), StoppedByPruner{.pruner = "median"}, kScore);
  EXPECT_FALSE(HasModel(0));
  EXPECT_TRUE(HasLog(0));
}

TEST_F(KeptModelsTest, TrialsThatHadUsedTheirTimeTakePlacesOfTheirOwn) {
  Complete(0, 0.5);
  const double values[] = {0.9, 0.7, 0.95};
  for (int i = 0; i < 3; ++i) {
    const fs::path best = Attempt(i + 1) / "best";
    Kept().SettleOvertime("s", {{"score", values[i]}}, best.string(), kScore);
  }
  EXPECT_TRUE(HasModel(0)) << "the best of the completed ones";
  EXPECT_FALSE(HasModel(1));
  EXPECT_FALSE(HasModel(2));
  EXPECT_TRUE(HasModel(3));
  Complete(4, 0.6);
  EXPECT_FALSE(HasModel(0));
  EXPECT_TRUE(HasModel(3));
}

TEST_F(KeptModelsTest, KeepAllRemovesNothing) {
  Complete(0, 0.5);
  const fs::path folder = Attempt(1);
  Kept(std::nullopt).Settle("s", folder.string(), StoppedByPruner{.pruner = "median"}, kScore);
  EXPECT_TRUE(HasModel(1));
}

TEST_F(KeptModelsTest, WhatAnInterruptedAttemptLeftGoesAtTheNextStart) {
  Complete(0, 0.5);
  Kept().Begun(Attempt(1).string());
  Kept().DiscardInterrupted({});
  EXPECT_FALSE(HasModel(1));
  EXPECT_TRUE(HasLog(1));
  EXPECT_TRUE(HasModel(0));
  const fs::path again = Attempt(1);
  Kept().DiscardInterrupted({});
  EXPECT_TRUE(HasModel(1)) << "once";
  Kept().Begun(again.string());
  Kept().Ended();
  Kept().DiscardInterrupted({});
  EXPECT_TRUE(HasModel(1)) << "it has ended";
  Kept().Begun(again.string());
  Kept().DiscardInterrupted({again.string()});
  EXPECT_TRUE(HasModel(1)) << "its result waits";
}

// As a program of the user's own leaves it, beside the log.
TEST_F(KeptModelsTest, OfAWholeFolderTheLogStays) {
  for (int number = 0; number < 3; ++number) {
    const std::string folder = Attempt(number).string();
    Kept().Settle(
        "s", folder,
        Completed{.metrics = {{"score", 0.1 * number}}, .model_path = ModelLeftIn(folder)}, kScore);
  }
  for (int number = 0; number < 3; ++number) {
    EXPECT_EQ(HasModel(number), number == 2) << number;
    EXPECT_TRUE(HasLog(number)) << number;
  }
}

TEST_F(KeptModelsTest, WhatTheWorkerWroteIsNoModel) {
  const fs::path folder = root_ / "runs/s/7";
  EXPECT_EQ(ModelLeftIn(folder.string()), "") << "there is no such folder";
  fs::create_directories(folder);
  std::ofstream(folder / "trainer.log") << "log";
  std::ofstream(folder / "hpo_params.yaml") << "{}";
  EXPECT_EQ(ModelLeftIn(folder.string()), "");
  std::ofstream(folder / "model.pt") << "weights";
  EXPECT_EQ(ModelLeftIn(folder.string()), folder.string());
}

// A trainer may name any path as its model's.
TEST_F(KeptModelsTest, NothingOutsideTheRunsFolderIsRemoved) {
  fs::create_directories(root_ / "precious");
  Complete(0, 0.9);
  for (const fs::path& path :
       {root_ / "precious", root_ / "runs" / ".." / "precious", root_ / "runs", root_}) {
    Kept().Settle("s", (root_ / "runs/s/0").string(),
                  Completed{.metrics = {{"score", 0.1}}, .model_path = path.string()}, kScore);
  }
  EXPECT_TRUE(fs::exists(root_ / "precious"));
  EXPECT_TRUE(HasModel(0));
}

TEST_F(KeptModelsTest, AFullDiskLeavesTheRecordAsItWas) {
  spdlog::set_level(spdlog::level::off);
  Complete(0, 0.5, Direction::kMaximize, /*num_kept=*/2);
  const std::string record = (root_ / "runs/s/best.json").string();
  const std::string before = ReadFile(record).value();
  const std::string model = (Attempt(1) / "best").string();
  {
    const FullDisk full(16);
    Kept(2).Settle("s", (root_ / "runs/s/1").string(),
                   Completed{.metrics = {{"score", 0.4}}, .model_path = model}, kScore);
  }
  EXPECT_EQ(ReadFile(record).value(), before);
}

// A part of an attempt's path is that of its study's folder.
TEST_F(KeptModelsTest, AFullDiskWhileAnAttemptBeginsCostsNoOtherItsModel) {
  spdlog::set_level(spdlog::level::off);
  Complete(0, 0.5);
  ASSERT_TRUE(HasModel(0));
  {
    const FullDisk full((root_ / "runs/s").string().size());
    Kept().Begun((root_ / "runs/s/1").string());
  }
  Kept().DiscardInterrupted({});
  EXPECT_TRUE(HasModel(0));
}

TEST_F(KeptModelsTest, ABrokenRecordStartsAnew) {
  std::ofstream(root_ / "runs/s/best.json") << "{";
  Complete(0, 0.5);
  EXPECT_TRUE(HasModel(0));
  Complete(1, 0.4);
  EXPECT_FALSE(HasModel(1));
}

}  // namespace
}  // namespace hpo::agent
