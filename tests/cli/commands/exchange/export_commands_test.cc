#include "cli/commands/exchange/export_commands.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/files/read_file.h"
#include "tests/cli/run_program.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

class ExportTest : public server::CoordinatorFixture {
 protected:
  ProgramResult Run(std::vector<std::string> words) const {
    words.push_back("--server");
    words.push_back(coordinator_->address());
    return RunProgram(std::move(words));
  }

  // Two trials that have ended, one that runs.
  void RunTrials() {
    ASSERT_TRUE(Create(server::kPlainStudy).ok());
    const std::string session = Register();
    Complete(Acquire(session, "a1").assignment(), 0.5);
    Complete(Acquire(session, "a2").assignment(), 0.9);
    Acquire(session, "a3");
  }

  std::vector<std::string> EventFiles(const std::string& folder) const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
};

TEST_F(ExportTest, TensorBoardGetsOneFolderATrialAndTheSameFilesAgain) {
  RunTrials();
  const std::string folder = folder_ / "boards";
  const ProgramResult first = Run({"export", "tensorboard", "--to", folder});
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.out, "3 trials of plain exported to " + folder + "\n");
  const std::vector<std::string> files = EventFiles(folder);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_THAT(files[2], HasSubstr("/plain/000002/events.out.tfevents."));
  const std::string content = ReadFile(files[1]).value();
  EXPECT_THAT(content, HasSubstr("result/score"));
  EXPECT_EQ(
      ParsedOutput(Run({"export", "tensorboard", "--to", folder, "--output", "json"}))["trials"],
      3);
  EXPECT_EQ(EventFiles(folder), files);
  EXPECT_EQ(ReadFile(files[1]).value(), content);
}

TEST_F(ExportTest, AFolderThatCannotBeMadeIsNamed) {
  RunTrials();
  std::ofstream(folder_ / "file") << "x";
  const ProgramResult failed = Run({"export", "tensorboard", "--to", folder_ / "file" / "boards"});
  EXPECT_EQ(failed.status, 4);
  EXPECT_THAT(failed.err, HasSubstr("file/boards/plain/000000"));
}

TEST_F(ExportTest, OptunaGetsOneFileAndTheSameAgain) {
  RunTrials();
  const std::string path = folder_ / "study.db";
  for (int repeat = 0; repeat < 2; ++repeat) {
    const ProgramResult exported = Run({"export", "optuna", path, "plain"});
    EXPECT_EQ(exported.status, 0) << exported.err;
    EXPECT_EQ(exported.out, "3 trials of plain exported to " + path + "\n");
  }
  const ProgramResult absent = Run({"export", "optuna", path, "absent"});
  EXPECT_EQ(absent.status, 3);
  const ProgramResult failed = Run({"export", "optuna", folder_ / "no" / "study.db"});
  EXPECT_EQ(failed.status, 4);
  EXPECT_THAT(failed.err, HasSubstr("no/study.db: unable to open"));
}

TEST_F(ExportTest, AnMlflowThatIsNotThereIsNamed) {
  RunTrials();
  const ProgramResult away = Run({"export", "mlflow", "--to", "http://127.0.0.1:1"});
  EXPECT_EQ(away.status, 5);
  EXPECT_THAT(away.err, HasSubstr("MLflow at http://127.0.0.1:1: GET "
                                  "/api/2.0/mlflow/experiments/get-by-name: "));
  const ProgramResult wrong = Run({"export", "mlflow", "--to", "sqlite:///runs.db"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("expected http://host:port"));
}

TEST_F(ExportTest, OnlyARunningTrialIsPreempted) {
  RunTrials();
  EXPECT_EQ(Run({"trial", "preempt", "2"}).out,
            "trial #2 of plain: its worker saves and gives it back at its next heartbeat\n");
  const ProgramResult ended = Run({"trial", "preempt", "0"});
  EXPECT_EQ(ended.status, 4);
  EXPECT_THAT(ended.err, HasSubstr("expected a running one, got COMPLETED"));
  EXPECT_EQ(Run({"trial", "preempt", "99"}).status, 3);
}

}  // namespace
}  // namespace hpo::cli
