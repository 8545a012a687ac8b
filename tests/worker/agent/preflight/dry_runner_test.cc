// Dry runs with a shell script in the place of hpo_dryrun.
#include "worker/agent/preflight/dry_runner.h"

#include <sched.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/files/read_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;

constexpr char kDocument[] =
    R"({"gpus": [{"verdict": "fits", "required_bytes": 900, "least_bytes": 800, )"
    R"("margin_bytes": 50, "notes": []}]})";

class DryRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    // What it was started with, for the test to read.
    Script(
        absl::StrCat("echo \"$*\" > $SEEN/words; env > $SEEN/env; cp $HPO_EMULATED_GPUS $SEEN; "
                     "cp -r $HPO_OUTPUT_DIR $SEEN; echo '",
                     kDocument, "'"));
    options_.command =
        "cd / && python3 train.py --lr {train.lr} --config {config} --to {output_dir}";
    options_.environment = {{"SEEN", folder_.path()}, {"PYTORCH_ALLOC_CONF", "x:True"}};
    options_.folder = folder_.path() + "/preflight";
    options_.mark = RandomId();
    options_.lock = folder_.path() + "/lock";
    options_.threads = 2;
    preflight_.id = "p1";
    preflight_.assignment.lease.trial = {.study = "s", .number = {7}};
    preflight_.assignment.task.params = {{"train.lr", 0.5}, {"width", int64_t{64}}};
  }

  void Script(const std::string& script) {
    options_.program = {"sh", folder_.Write("hpo_dryrun", script + "\n")};
  }

  std::optional<PreflightReport> Run(const StopWait& stop = [](absl::Duration) { return false; }) {
    const ModelCatalog models;
    const DataCatalog data({.folder = folder_.path()});
    ProcessDryRunner runner(options_, device_, models, data);
    return runner.Run(preflight_, stop);
  }

  std::string Seen(const std::string& name) {
    return ReadFile(folder_.path() + "/" + name).value_or("");
  }

  // Whether the process whose number the file holds runs.
  bool Runs(const std::string& file) {
    const std::string text = Seen(file);
    int64_t pid = 0;
    EXPECT_TRUE(absl::SimpleAtoi(absl::StripSuffix(text, "\n"), &pid));
    const std::string state = ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("gone) Z");
    return !absl::StrContains(state, ") Z");
  }

  TemporaryFolder folder_;
  DryRunOptions options_;
  Preflight preflight_;
  DeviceProfile device_{.kind = "cuda",
                        .name = "NVIDIA L4",
                        .total = GiB(22),
                        .capability = "8.9",
                        .multiprocessors = 58,
                        .threads_per_multiprocessor = 1536};
};

TEST_F(DryRunnerTest, RunsTheCommandOfTheTrialAndReports) {
  const std::optional<PreflightReport> report = Run();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->id, "p1");
  EXPECT_EQ(report->needs.front().state, PreflightState::kMeasured) << report->message;
  EXPECT_EQ(report->needs.front().required, Bytes{800});
  const std::string output = options_.folder + "/output";
  EXPECT_EQ(Seen("words"),
            absl::StrCat("--json --ample --threads 2 --timeout 120 --gpu gpu-0 -- /bin/sh -c cd / "
                         "&& python3 train.py --lr 0.5 --config ",
                         output, "/hpo_params.yaml --to ", output, "\n"));
  EXPECT_THAT(Seen("gpus"), HasSubstr("capability = 8.9\nmultiprocessors = 58\n"));
  EXPECT_THAT(Seen("output/hpo_params.yaml"), HasSubstr("64"));
}

TEST_F(DryRunnerTest, HasTheEnvironmentOfATrialAndNoGpu) {
  Run();
  const std::string environment = "\n" + Seen("env");
  for (const std::string line :
       {"HPO_PARAM_TRAIN_LR=0.5", "PYTHONUNBUFFERED=1", "PYTORCH_ALLOC_CONF=x:True",
        "CUDA_VISIBLE_DEVICES=GPU-68706f65"}) {
    EXPECT_THAT(environment, HasSubstr("\n" + line + "\n"));
  }
  EXPECT_THAT(environment, HasSubstr("\nHPO_OUTPUT_DIR=" + options_.folder + "/output\n"));
}

TEST_F(DryRunnerTest, LeavesNothing) {
  Script("echo x > $HPO_OUTPUT_DIR/model; mkdir $HPO_OUTPUT_DIR/more; exit 3");
  const std::optional<PreflightReport> report = Run();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->needs.front().state, PreflightState::kFailed);
  EXPECT_EQ(report->message, "hpo_dryrun exited with status 3");
  EXPECT_FALSE(std::filesystem::exists(options_.folder));
}

TEST_F(DryRunnerTest, SaysWhyAProgramCannotBeDryRun) {
  Script("echo 'hpo memory dry-run: no process of the program imported torch' >&2; exit 1");
  EXPECT_EQ(Run()->message, "no process of the program imported torch");
  options_.program = {"no-such-python3"};
  EXPECT_THAT(Run()->message, HasSubstr("no-such-python3: not found"));
  options_.command = "python3 train.py {misspelt}";
  EXPECT_THAT(Run()->message, HasSubstr("misspelt"));
  // As on a full disk.
  options_.folder = folder_.Write("file", "") + "/preflight";
  EXPECT_THAT(Run()->message, HasSubstr("Not a directory"));
}

TEST_F(DryRunnerTest, EndsAllThatItHasStartedWhenItIsToStop) {
  // One has left its session, and ignores the wish to end.
  Script("setsid sh -c 'trap \"\" TERM; echo $$ > $SEEN/pid; sleep 1000' & wait");
  const std::optional<PreflightReport> report =
      Run([this](absl::Duration) { return absl::StrContains(Seen("pid"), "\n"); });
  EXPECT_FALSE(report.has_value());
  EXPECT_FALSE(Runs("pid"));
  EXPECT_FALSE(std::filesystem::exists(options_.folder));
}

// hpo_dryrun ends its program and removes its files at this signal.
TEST_F(DryRunnerTest, IsToldToEndWhenTheWorkerIsKilled) {
  Script("trap 'echo > $SEEN/ended; exit' TERM; echo > $SEEN/begun; while :; do sleep 0.1; done");
  const auto await = [this](const std::string& file) {
    const SystemClock clock;
    const absl::Duration deadline = clock.Monotonic() + absl::Seconds(20);
    while (Seen(file).empty() && clock.Monotonic() < deadline) sched_yield();
    return !Seen(file).empty();
  };
  const pid_t worker = fork();
  if (worker == 0) {
    Run();
    _exit(1);
  }
  ASSERT_GT(worker, 0);
  EXPECT_TRUE(await("begun"));
  ASSERT_EQ(kill(worker, SIGKILL), 0);
  ASSERT_EQ(waitpid(worker, nullptr, 0), worker);
  EXPECT_TRUE(await("ended"));
}

TEST_F(DryRunnerTest, WaitsForItsTurn) {
  UniqueFd other(open(options_.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  int num_asked = 0;
  EXPECT_FALSE(Run([&](absl::Duration) { return ++num_asked == 2; }).has_value());
  EXPECT_EQ(Seen("words"), "");
  num_asked = 0;
  const std::optional<PreflightReport> report = Run([&](absl::Duration) {
    if (++num_asked == 2) other.Reset();
    return false;
  });
  EXPECT_TRUE(report.has_value());
}

}  // namespace
}  // namespace hpo::agent
