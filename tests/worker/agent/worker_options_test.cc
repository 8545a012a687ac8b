#include "worker/agent/worker_options.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;

class WorkerOptionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HPO_SERVER", "HPO_MODEL_DIR", "HPO_DATA_DIR", "HPO_LOG_LEVEL",
                             "HPO_CHECKPOINT_DIR", "HPO_WORKER_NAME"}) {
      unsetenv(name);
    }
  }

  std::variant<WorkerOptions, int> Read(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "hpo-worker");
    out_.str("");
    err_.str("");
    return ReadWorkerOptions(static_cast<int>(arguments.size()), arguments.data(), out_, err_);
  }
  WorkerOptions Options(std::vector<const char*> arguments) {
    std::variant<WorkerOptions, int> read = Read(std::move(arguments));
    EXPECT_TRUE(std::holds_alternative<WorkerOptions>(read)) << err_.str();
    return std::holds_alternative<WorkerOptions>(read) ? std::get<WorkerOptions>(read)
                                                       : WorkerOptions{};
  }

  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(WorkerOptionsTest, NothingGivenIsTheVisibleGpusOnThisMachinesServer) {
  const WorkerOptions options = Options({});
  EXPECT_EQ(options.gpu, "visible");
  EXPECT_FALSE(options.cpu);
  EXPECT_EQ(options.server, "127.0.0.1:50051");
  EXPECT_EQ(options.connect_timeout, absl::Minutes(5));
  EXPECT_FALSE(options.memory_limit);
  EXPECT_FALSE(options.max_trials);
}

TEST_F(WorkerOptionsTest, EverythingGivenArrives) {
  const std::string file = ::testing::TempDir() + "/rows.jsonl";
  std::ofstream(file) << "x";
  const WorkerOptions options = Options({"--device",
                                         "cpu",
                                         "--memory-limit",
                                         "2GiB",
                                         "--server",
                                         "h:1",
                                         "--study",
                                         "a",
                                         "--study",
                                         "b",
                                         "--models",
                                         "/m",
                                         "--data",
                                         "/d",
                                         "--train",
                                         file.c_str(),
                                         "--validation",
                                         file.c_str(),
                                         "--trainer",
                                         "python3 t.py",
                                         "--state-dir",
                                         "/s",
                                         "--name",
                                         "w",
                                         "--max-trials",
                                         "7",
                                         "--stay",
                                         "--keep-all-models",
                                         "--connect-timeout",
                                         "500ms",
                                         "--log-level",
                                         "warn",
                                         "--log-json"});
  EXPECT_TRUE(options.cpu);
  EXPECT_EQ(options.memory_limit, GiB(2));
  EXPECT_EQ(options.server, "h:1");
  EXPECT_EQ(options.studies, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.models, "/m");
  EXPECT_EQ(options.data, "/d");
  EXPECT_EQ(options.train, file);
  EXPECT_EQ(options.validation, file);
  EXPECT_EQ(options.trainer, "python3 t.py");
  EXPECT_EQ(options.state_dir, "/s");
  EXPECT_EQ(options.name, "w");
  EXPECT_EQ(options.max_trials, 7);
  EXPECT_TRUE(options.stay);
  EXPECT_TRUE(options.keep_all_models);
  EXPECT_EQ(options.connect_timeout, absl::Milliseconds(500));
  EXPECT_EQ(options.log_level, "warn");
  EXPECT_TRUE(options.log_json);
}

TEST_F(WorkerOptionsTest, FlagsBeatTheEnvironment) {
  setenv("HPO_SERVER", "from-environment:1", 1);
  setenv("HPO_MODEL_DIR", "/models", 1);
  EXPECT_EQ(Options({}).server, "from-environment:1");
  EXPECT_EQ(Options({}).models, "/models");
  EXPECT_EQ(Options({"--server", "flag:2"}).server, "flag:2");
}

TEST_F(WorkerOptionsTest, TheLastCardAndNameCount) {
  const WorkerOptions options =
      Options({"--gpu", "all", "--gpu", "GPU-1", "--name", "a", "--name", "b"});
  EXPECT_EQ(options.gpu, "GPU-1");
  EXPECT_EQ(options.name, "b");
}

TEST_F(WorkerOptionsTest, ATrainerWithPlacesIsAPlainProgram) {
  EXPECT_TRUE(Options({"--trainer", "python3 t.py --lr {train.lr}"}).IsPlainProgram());
  EXPECT_FALSE(Options({"--trainer", "f() { python3 ${HOME}/t.py; }; f"}).IsPlainProgram());
  EXPECT_TRUE(Options({"--trainer", "t", "--metrics-file", "m.json"}).IsPlainProgram());
  EXPECT_TRUE(Options({"--trainer", "t", "--metric-pattern", "acc: (.*)"}).IsPlainProgram());
}

TEST_F(WorkerOptionsTest, DeviceCudaIsTheFirstCard) {
  EXPECT_EQ(Options({"--device", "cuda"}).gpu, "visible");
  EXPECT_EQ(Options({"--device", "cuda", "--gpu", "3"}).gpu, "3");
}

TEST_F(WorkerOptionsTest, WrongCommandLinesAreOneLineAndStatus78) {
  const std::pair<std::vector<const char*>, std::string> cases[] = {
      {{"--device", "cpu"}, "--memory-limit"},
      {{"--device", "cpu", "--memory-limit", "lots"}, "lots"},
      {{"--device", "cpu", "--memory-limit", "0"}, "at least 1.00 MiB"},
      {{"--device", "tpu"}, "tpu"},
      {{"--gpu", "0", "--device", "cpu", "--memory-limit", "1GiB"}, "expected one of the two"},
      {{"--gpus-per-trial", "4"},
       "--gpus-per-trial 4: expected --allow-commands or --trainer too; hpo-trainer trains on one "
       "GPU"},
      {{"--gpus-per-trial", "2", "--trainer", "t", "--device", "cpu", "--memory-limit", "1GiB"},
       "--gpus-per-trial and --device cpu: expected one of the two"},
      {{"--gpus-per-trial", "0", "--trainer", "t"}, "--gpus-per-trial"},
      {{"--train", "/nowhere/rows.jsonl"}, "/nowhere/rows.jsonl"},
      {{"--sever", "x"}, "--server"},
      {{"--max-trials", "-1"}, "--max-trials"},
      {{"--metrics-file", "m.json"}, "--metrics-file: expected --trainer"},
      {{"--trainer", "t", "--metric-pattern", "acc"}, "round brackets"},
      {{"--log-level", "loud"}, "loud"},
  };
  for (const auto& [arguments, message] : cases) {
    SCOPED_TRACE(message);
    const std::variant<WorkerOptions, int> read = Read(arguments);
    ASSERT_TRUE(std::holds_alternative<int>(read));
    EXPECT_EQ(std::get<int>(read), 78);
    EXPECT_THAT(err_.str(), HasSubstr(message));
    EXPECT_EQ(err_.str().find('\n'), err_.str().size() - 1) << err_.str();
  }
}

TEST_F(WorkerOptionsTest, HowManyModelsStay) {
  EXPECT_EQ(Options({}).num_kept_models, 1);
  EXPECT_EQ(Options({"--keep-models", "5"}).num_kept_models, 5);
  EXPECT_EQ(std::get<int>(Read({"--keep-models", "0"})), 78);
  EXPECT_EQ(std::get<int>(Read({"--keep-models", "5", "--keep-all-models"})), 78);
}

TEST_F(WorkerOptionsTest, HelpHoldsTheExitStatuses) {
  EXPECT_EQ(std::get<int>(Read({"--help"})), 0);
  for (const char* text : {"70 ", "75 ", "77 ", "78 ", "130 ", "--memory-limit"}) {
    EXPECT_THAT(out_.str(), HasSubstr(text));
  }
  EXPECT_EQ(std::get<int>(Read({"--version"})), 0);
  EXPECT_THAT(out_.str(), HasSubstr(std::string("hpo-worker ") + WorkerVersion()));
}

TEST_F(WorkerOptionsTest, CheckpointsAndTheTimeLimit) {
  const WorkerOptions usual = Options({"--state-dir", "/state"});
  EXPECT_EQ(usual.checkpoints.root, "/state/checkpoints");
  EXPECT_EQ(usual.checkpoints.every, absl::Minutes(10));
  EXPECT_EQ(usual.checkpoints.quota, Bytes{});
  EXPECT_EQ(usual.time_limit, absl::InfiniteDuration());
  const WorkerOptions given =
      Options({"--checkpoints", "/shared", "--checkpoint-every", "90s", "--checkpoint-every-steps",
               "50", "--checkpoint-quota", "50GiB", "--time-limit", "8h"});
  EXPECT_EQ(given.checkpoints.root, "/shared");
  EXPECT_EQ(given.checkpoints.every, absl::Seconds(90));
  EXPECT_EQ(given.checkpoints.every_steps, 50);
  EXPECT_EQ(given.checkpoints.quota, GiB(50));
  EXPECT_EQ(given.time_limit, absl::Hours(8));
  EXPECT_EQ(Options({"--checkpoints", "none"}).checkpoints.root, "");
  EXPECT_FALSE(usual.stop_grace.has_value());
  EXPECT_EQ(Options({"--stop-grace", "5m"}).stop_grace, absl::Minutes(5));
  for (const char* option : {"--checkpoint-every", "--time-limit", "--stop-grace"}) {
    EXPECT_EQ(std::get<int>(Read({option, "soon"})), 78);
    EXPECT_THAT(err_.str(), HasSubstr("expected a duration such as 30s or 5m, got 'soon'"));
  }
  EXPECT_EQ(std::get<int>(Read({"--checkpoint-quota", "much"})), 78);
  EXPECT_THAT(err_.str(), HasSubstr("--checkpoint-quota"));
}

TEST_F(WorkerOptionsTest, DryRunsOfConfigurations) {
  const WorkerOptions usual = Options({});
  EXPECT_EQ(usual.preflight, PreflightWish::kIfAsked);
  EXPECT_EQ(usual.preflight_threads, 1);
  EXPECT_EQ(usual.preflight_timeout, absl::Seconds(120));
  const WorkerOptions given =
      Options({"--preflight", "--preflight-threads", "2", "--preflight-timeout", "5m"});
  EXPECT_EQ(given.preflight, PreflightWish::kAlways);
  EXPECT_EQ(given.preflight_threads, 2);
  EXPECT_EQ(given.preflight_timeout, absl::Minutes(5));
  EXPECT_EQ(Options({"--no-preflight"}).preflight, PreflightWish::kNever);
  EXPECT_EQ(std::get<int>(Read({"--preflight", "--no-preflight"})), 78);
  EXPECT_EQ(std::get<int>(Read({"--preflight-threads", "0"})), 78);
  EXPECT_EQ(std::get<int>(Read({"--preflight-timeout", "0s"})), 78);
  EXPECT_THAT(err_.str(), HasSubstr("--preflight-timeout: expected more than 0s, got 0s"));
}

TEST_F(WorkerOptionsTest, AllocatorAndThreads) {
  const WorkerOptions usual = Options({"--gpu", "0"});
  EXPECT_EQ(usual.allocator, "");
  EXPECT_EQ(usual.threads, std::nullopt);
  const WorkerOptions given =
      Options({"--gpu", "0", "--allocator", "max_split_size_mb:128, expandable_segments:True",
               "--threads", "3"});
  EXPECT_EQ(given.allocator, "expandable_segments:True,max_split_size_mb:128");
  EXPECT_EQ(given.threads, 3);
  EXPECT_EQ(std::get<int>(Read({"--gpu", "0", "--allocator", "max_split_size_mb:8"})), 78);
  EXPECT_THAT(err_.str(), HasSubstr("--allocator: max_split_size_mb: expected a whole number"));
  EXPECT_EQ(std::get<int>(Read({"--device", "cpu", "--memory-limit", "1GiB", "--allocator",
                                "expandable_segments:True"})),
            78);
  EXPECT_THAT(err_.str(), HasSubstr("--allocator: expected a card, got --device cpu"));
  EXPECT_EQ(std::get<int>(Read({"--threads", "0"})), 78);
  EXPECT_THAT(err_.str(), HasSubstr("--threads"));
}

}  // namespace
}  // namespace hpo::agent
