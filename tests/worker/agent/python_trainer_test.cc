// The Python trainers of examples/, run as a worker runs them.
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/files/read_file.h"
#include "common/protocol/trainer_protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_paths.h"
#include "worker/agent/process/trainer_process.h"

namespace hpo::agent {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPythonPatience = absl::Seconds(60);

bool Python(const std::string& code) {
  return std::system(("python3 -c '" + code + "' >/dev/null 2>&1").c_str()) == 0;
}

class PythonTrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Python("pass")) GTEST_SKIP() << "no python3 on this machine";
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        (std::string("python-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    // Separable: three words tell the label.
    std::ofstream rows(folder_ / "rows.jsonl");
    const char* good[] = {"fine", "great", "lovely"};
    const char* bad[] = {"poor", "awful", "sad"};
    for (int i = 0; i < 60; ++i) {
      rows << R"({"text": "a )" << (i % 2 == 0 ? good : bad)[i % 3] << R"( day", "label": ")"
           << (i % 2 == 0 ? "yes" : "no") << "\"}\n";
    }
  }
  void TearDown() override {
    process_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start(const std::string& program) {
    auto process = TrainerProcess::Start(
        {.argv = {"/bin/sh", "-c",
                  "exec python3 " + SourcePath("examples/sklearn_trainer/" + program)},
         .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}},
         .log_path = (folder_ / "log").string()});
    ASSERT_TRUE(process.ok()) << process.status();
    process_ = *std::move(process);
    const std::optional<UpMessage> first = Next();
    ASSERT_TRUE(first && std::holds_alternative<Hello>(*first)) << Log();
    EXPECT_EQ(std::get<Hello>(*first).version, kTrainerProtocolVersion);
    EXPECT_TRUE(std::get<Hello>(*first).Has("stop"));
    EXPECT_TRUE(std::get<Hello>(*first).Has("reuse"));
  }

  std::string Log() { return ReadFile((folder_ / "log").string()).value_or(""); }

  TrainerJob Job(ParamMap params) {
    TrainerJob job;
    job.study = "s";
    job.task.params = std::move(params);
    job.task.trainer.train = job.task.trainer.validation = (folder_ / "rows.jsonl").string();
    job.task.trainer.epochs = 3;
    job.task.objective.metric = "macro_f1";
    job.task.limit = GiB(1);
    job.task.seed = 7;
    job.output_dir = folder_.string();
    return job;
  }
  static ParamMap LogisticParams() { return {{"features.log2", int64_t{12}}, {"rate", 0.5}}; }

  void Send(const DownMessage& message) {
    ASSERT_TRUE(process_->channel().WriteLine(EncodeDown(message), kPythonPatience).ok());
  }

  // The next message; nullopt when the trainer is gone or silent.
  std::optional<UpMessage> Next() {
    while (lines_.empty()) {
      pollfd readable{.fd = process_->channel().fd(), .events = POLLIN, .revents = 0};
      if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(kPythonPatience))) != 1) {
        return std::nullopt;
      }
      ReceivedLines received = process_->channel().ReadAvailable().value();
      lines_.insert(lines_.end(), received.lines.begin(), received.lines.end());
      if (lines_.empty() && received.closed) return std::nullopt;
    }
    const std::string line = lines_.front();
    lines_.erase(lines_.begin());
    const absl::StatusOr<UpMessage> message = DecodeUp(line);
    EXPECT_TRUE(message.ok()) << message.status() << " in " << line;
    if (!message.ok()) return std::nullopt;
    return *message;
  }

  // Reads until the outcome; measurements go to `measured`.
  OutcomeMessage AwaitOutcome(std::vector<Measurement>& measured) {
    while (const std::optional<UpMessage> message = Next()) {
      if (const auto* outcome = std::get_if<OutcomeMessage>(&*message)) return *outcome;
      if (const auto* measurement = std::get_if<MeasurementMessage>(&*message)) {
        measured.push_back(measurement->measurement);
      }
    }
    ADD_FAILURE() << "no outcome; the trainer's log:\n" << Log();
    return {};
  }

  std::filesystem::path folder_;
  std::unique_ptr<TrainerProcess> process_;
  std::vector<std::string> lines_;
};

TEST_F(PythonTrainerTest, LearnsAndServesSeveralTrials) {
  Start("logistic_regression.py");
  for (int trial = 0; trial < 2; ++trial) {
    Send(Job(LogisticParams()));
    std::vector<Measurement> measured;
    const OutcomeMessage outcome = AwaitOutcome(measured);
    ASSERT_TRUE(outcome.outcome && std::holds_alternative<Completed>(*outcome.outcome)) << Log();
    EXPECT_GT(std::get<Completed>(*outcome.outcome).metrics.at("macro_f1"), 0.95);
    ASSERT_EQ(measured.size(), 3u);
    EXPECT_EQ(measured[2].step, 3);
    EXPECT_TRUE(outcome.clean);
    EXPECT_EQ(outcome.memory.live_peak, Bytes{4096 * 8});
  }
  Send(ShutdownRequest{});
  EXPECT_EQ(process_->WaitFor(kPythonPatience), ProcessExit({.code = 0, .signal = std::nullopt}));
}

TEST_F(PythonTrainerTest, StopsWhenPrunedWithWhatItHas) {
  Start("logistic_regression.py");
  TrainerJob job = Job(LogisticParams());
  job.task.trainer.epochs = 1'000'000;
  Send(job);
  ASSERT_TRUE(Next());  // the first measurement
  Send(StopRequest{.reason = "pruned"});
  std::vector<Measurement> measured;
  const OutcomeMessage outcome = AwaitOutcome(measured);
  ASSERT_TRUE(outcome.outcome && std::holds_alternative<StoppedByPruner>(*outcome.outcome));
  EXPECT_GT(std::get<StoppedByPruner>(*outcome.outcome).metrics.count("macro_f1"), 0u);
}

TEST_F(PythonTrainerTest, ADrainHasNoResult) {
  Start("logistic_regression.py");
  TrainerJob job = Job(LogisticParams());
  job.task.trainer.epochs = 1'000'000;
  Send(job);
  ASSERT_TRUE(Next());
  Send(StopRequest{.reason = "drain", .checkpoint = true});
  std::vector<Measurement> measured;
  EXPECT_FALSE(AwaitOutcome(measured).outcome);
}

TEST_F(PythonTrainerTest, AConfigurationTooBigIsOutOfMemory) {
  Start("logistic_regression.py");
  TrainerJob job = Job(LogisticParams());
  job.task.limit = KiB(1);
  Send(job);
  std::vector<Measurement> measured;
  const OutcomeMessage outcome = AwaitOutcome(measured);
  ASSERT_TRUE(outcome.outcome && std::holds_alternative<OutOfMemory>(*outcome.outcome));
  EXPECT_THAT(std::get<OutOfMemory>(*outcome.outcome).message, HasSubstr("4096 weights"));
}

TEST_F(PythonTrainerTest, AnExceptionFailsTheTrialAndIsInTheLog) {
  Start("logistic_regression.py");
  Send(Job({{"features.log2", int64_t{12}}}));  // no rate
  std::vector<Measurement> measured;
  const OutcomeMessage outcome = AwaitOutcome(measured);
  ASSERT_TRUE(outcome.outcome && std::holds_alternative<Failed>(*outcome.outcome));
  EXPECT_EQ(std::get<Failed>(*outcome.outcome).failure_class, FailureClass::kInternal);
  EXPECT_THAT(std::get<Failed>(*outcome.outcome).message, HasSubstr("rate"));
  EXPECT_THAT(Log(), HasSubstr("Traceback"));
}

TEST_F(PythonTrainerTest, EndsWithTheWorkersEndOfTheChannel) {
  Start("logistic_regression.py");
  ASSERT_EQ(shutdown(process_->channel().fd(), SHUT_WR), 0);
  EXPECT_EQ(process_->WaitFor(kPythonPatience), ProcessExit({.code = 0, .signal = std::nullopt}));
}

TEST_F(PythonTrainerTest, ScikitLearn) {
  if (!Python("import sklearn")) GTEST_SKIP() << "scikit-learn is not importable by python3";
  Start("train.py");
  Send(Job({{"features.log2", int64_t{12}},
            {"features.ngrams", int64_t{1}},
            {"loss", std::string("hinge")},
            {"alpha", 1e-4}}));
  std::vector<Measurement> measured;
  const OutcomeMessage outcome = AwaitOutcome(measured);
  ASSERT_TRUE(outcome.outcome && std::holds_alternative<Completed>(*outcome.outcome)) << Log();
  EXPECT_GT(std::get<Completed>(*outcome.outcome).metrics.at("macro_f1"), 0.9);
}

}  // namespace
}  // namespace hpo::agent
