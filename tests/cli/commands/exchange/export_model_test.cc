#include "cli/commands/exchange/export_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/files/read_file.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ExportModelTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/export_model_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::create_directory(folder_ / "best");
    for (const char* file : {"config.json", "model.safetensors", "vocab.txt"}) {
      std::ofstream(folder_ / "best" / file) << "content of " << file;
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  Trial TrialAt(const fs::path& model) const {
    return Trial{.id = {.study = "s", .number = TrialNumber{4}},
                 .state = TrialState::kCompleted,
                 .outcome = Completed{.model_path = model},
                 .attempts = {Attempt{.worker = "host:gpu0"}}};
  }

  size_t Entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(ExportModelTest, CopiesEveryFile) {
  fs::create_directory(folder_ / "empty");
  for (const fs::path& target :
       {folder_ / "new", folder_ / "deep" / "new", folder_ / "slash" / "", folder_ / "empty"}) {
    SCOPED_TRACE(target);
    const absl::Status status = ExportModel(TrialAt(folder_ / "best"), target);
    ASSERT_TRUE(status.ok()) << status;
    for (const char* file : {"config.json", "model.safetensors", "vocab.txt"}) {
      EXPECT_EQ(ReadFile(target / file).value(), std::string("content of ") + file);
    }
  }
  EXPECT_EQ(Entries(), 5u);  // and nothing temporary
}

TEST_F(ExportModelTest, WhatAnotherProgramLeavesIsCopiedWithItsFolders) {
  fs::create_directories(folder_ / "own" / "checkpoint-3");
  std::ofstream(folder_ / "own" / "trainer.log") << "printed";
  std::ofstream(folder_ / "own" / "checkpoint-3" / "weights.pt") << "w";
  ASSERT_TRUE(ExportModel(TrialAt(folder_ / "own"), folder_ / "newer").ok());
  EXPECT_EQ(ReadFile(folder_ / "newer" / "checkpoint-3" / "weights.pt").value(), "w");
  EXPECT_FALSE(fs::exists(folder_ / "newer" / "trainer.log"));
  fs::remove_all(folder_ / "own" / "checkpoint-3");
  EXPECT_EQ(ExportModel(TrialAt(folder_ / "own"), folder_ / "newest").code(),
            absl::StatusCode::kFailedPrecondition);
}

// Its config.json need not be Hugging Face's.
TEST_F(ExportModelTest, AConfigurationOfAnotherProgramIsNoIncompleteModel) {
  fs::create_directory(folder_ / "own");
  for (const char* file : {"config.json", "model.pt", "trainer.log"}) {
    std::ofstream(folder_ / "own" / file) << "x";
  }
  EXPECT_TRUE(ExportModel(TrialAt(folder_ / "own"), folder_ / "new").ok());
  EXPECT_TRUE(fs::exists(folder_ / "new" / "model.pt"));
}

TEST_F(ExportModelTest, ATargetThatCannotBeMadeIsNamedBeforeThereIsAModel) {
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THAT(std::string(CheckExportTarget(folder_ / "file/a/b").message()),
              HasSubstr("file: Not a directory"));
  for (const char* target : {"a/b/c/", "a", "best/../d"}) {
    EXPECT_TRUE(CheckExportTarget(folder_ / target).ok()) << target;
  }
}

TEST_F(ExportModelTest, NeverTouchesWhatIsThere) {
  fs::create_directory(folder_ / "full");
  std::ofstream(folder_ / "full" / "mine") << "x";
  std::ofstream(folder_ / "file") << "x";
  for (const char* target : {"full", "file"}) {
    const absl::Status status = ExportModel(TrialAt(folder_ / "best"), folder_ / target);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("something is there"));
  }
  EXPECT_EQ(Entries(), 3u);
}

TEST_F(ExportModelTest, AModelElsewhereIsNamedWithItsWorker) {
  const absl::Status status = ExportModel(TrialAt("/nowhere/best"), folder_ / "new");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is on host:gpu0, in /nowhere/best"));
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(ExportModelTest, AnIncompleteFolderIsRefused) {
  fs::remove(folder_ / "best" / "model.safetensors");
  const absl::Status status = ExportModel(TrialAt(folder_ / "best"), folder_ / "new");
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected model.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(ExportModelTest, ATrialThatHadUsedItsTimeSaysWhereToLook) {
  Trial trial;
  trial.outcome = StoppedByPruner{.pruner = "time limit"};
  EXPECT_THAT(std::string(ExportModel(trial, folder_ / "new").message()),
              HasSubstr("the log of its worker says where its best weights are"));
}

TEST_F(ExportModelTest, ATrialWithoutAModelHasNone) {
  EXPECT_EQ(ExportModel(TrialAt(""), folder_ / "new").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ExportModel(Trial(), folder_ / "new").code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hpo::cli
