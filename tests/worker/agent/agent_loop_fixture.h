// The worker's loop against a coordinator in memory and real trainer processes (fake_trainer).
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"
#include "tests/fakes/fake_coordinator.h"
#include "worker/agent/loop/agent_loop.h"

namespace hpo::agent {

// Starts fake_trainer and remembers each process.
class CountingLauncher final : public TrainerLauncher {
 public:
  explicit CountingLauncher(std::map<std::string, std::string> environment)
      : environment_(std::move(environment)) {}

  absl::StatusOr<std::unique_ptr<TrainerProcess>> Launch(const std::string& log_path) override {
    if (pids_.size() >= refused_from_ && num_refused_ < refusals_.size()) {
      return refusals_[num_refused_++];
    }
    auto process =
        TrainerProcess::Start({.argv = argv_, .environment = environment_, .log_path = log_path});
    if (process.ok()) pids_.push_back((*process)->pid());
    return process;
  }
  std::string Describe() const override { return "fake_trainer"; }

  std::vector<pid_t> pids_;
  std::vector<absl::Status> refusals_;  // instead of processes, once there were `refused_from_`
  size_t refused_from_ = 0;
  size_t num_refused_ = 0;
  std::vector<std::string> argv_ = {HPO_FAKE_TRAINER};
  std::map<std::string, std::string> environment_;
};

// Free bytes that a test sets.
class FakeCapacity final : public DeviceCapacity {
 public:
  absl::StatusOr<DeviceProfile> Profile() override {
    return DeviceProfile{.kind = "cpu", .name = "test", .base = base_};
  }
  absl::StatusOr<Bytes> Available() override {
    if (num_silent_reads_ > 0 && num_silent_reads_-- > 0) {
      return absl::UnavailableError("NVML: nvmlDeviceGetMemoryInfo failed");
    }
    return Bytes{num_reads_++ < reads_before_drop_ ? available_.load() : dropped_.load()};
  }
  void TrainerStarting() override {}
  void TrainerRuns(std::optional<pid_t>) override {}

  std::atomic<int64_t> available_{GiB(1).count};
  Bytes base_;
  // From the read of this number on, `dropped_` is free.
  std::atomic<int64_t> reads_before_drop_{INT64_MAX};
  std::atomic<int64_t> dropped_{0};
  std::atomic<int> num_silent_reads_{0};  // the next reads fail

 private:
  std::atomic<int64_t> num_reads_{0};
};

class AgentLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        (std::string("agent-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "data_facts");
    coordinator_.SetHeartbeatInterval(absl::Milliseconds(20));
    options_.worker = "test:cpu";
    options_.device = "cpu";
    options_.runs_folder = (folder_ / "runs").string();
    options_.checkpoints.root = (folder_ / "checkpoints").string();
    options_.server = "fake";
    options_.first_retry = absl::Milliseconds(1);
    options_.longest_retry = absl::Milliseconds(5);
    options_.attempt.first_report_retry = absl::Milliseconds(1);
    options_.attempt.longest_report_retry = absl::Milliseconds(5);
    slot_options_.log_path = (folder_ / "trainer.log").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Assignment MakeAssignment(int64_t trial, ParamMap params = {}) {
    Assignment assignment;
    assignment.lease = {
        .trial = {.study = "s", .number = {trial}}, .attempt = {1}, .token = RandomId()};
    assignment.task.params = std::move(params);
    assignment.task.plan = {.effective_batch = 32, .micro_batch = 16};
    assignment.task.predicted = MiB(100);
    assignment.required = MiB(103);
    assignment.task.limit = MiB(900);
    assignment.task.objective.metric = "macro_f1";
    return assignment;
  }
  void Add(int64_t trial, ParamMap params = {}) {
    coordinator_.AddAssignment(MakeAssignment(trial, std::move(params)));
  }

  AgentResult Run() { return Run(stop_); }
  AgentResult Run(StopSignal& stop) {
    Outbox outbox = Outbox::Open((folder_ / "outbox").string()).value();
    ModelCatalog models;
    DataCatalog data({.folder = folder_.string(),
                      .train_file = train_file_,
                      .cache_folder = (folder_ / "data_facts").string()});
    const AgentServices services{.client = coordinator_,
                                 .heartbeat_client = coordinator_,
                                 .launcher = launcher_,
                                 .capacity = capacity_,
                                 .data = data,
                                 .models = models,
                                 .outbox = outbox,
                                 .stop = stop,
                                 .count_oom_kills = [this] { return oom_kills_.load(); },
                                 .device_profiles = device_profiles_,
                                 .preflight = preflight_};
    return RunAgent(services, options_, slot_options_);
  }

  size_t NumOwed() { return Outbox::Open((folder_ / "outbox").string())->pending().size(); }

  // Of a trial's first attempt: whether its weights-only copy is there.
  bool HasBest(int64_t trial) {
    return std::filesystem::exists(folder_ / "runs/s" / absl::StrFormat("%06d-1", trial) /
                                   "best/model.safetensors");
  }

  // Of the first trial, in the order of arrival: reported, then with the result.
  std::vector<int64_t> StepsTold() {
    std::vector<Measurement> told;
    for (const AttemptReport& report : coordinator_.reports()) {
      told.insert(told.end(), report.measurements.begin(), report.measurements.end());
    }
    const FinishRequest finish = coordinator_.results().at(0);
    told.insert(told.end(), finish.measurements.begin(), finish.measurements.end());
    std::vector<int64_t> steps;
    for (const Measurement& measurement : told) steps.push_back(measurement.step);
    return steps;
  }

  TrialOutcome OnlyOutcome() {
    const std::vector<FinishRequest> results = coordinator_.results();
    EXPECT_THAT(results, ::testing::SizeIs(1));
    return results.empty() ? TrialOutcome() : results.front().outcome;
  }

  std::filesystem::path folder_;
  std::string train_file_;  // --train
  FakeCoordinator coordinator_;
  CountingLauncher launcher_{{}};
  FakeCapacity capacity_;
  StopSignal stop_;
  std::atomic<int64_t> oom_kills_{0};
  DeviceProfiles* device_profiles_ = nullptr;
  PreflightServices* preflight_ = nullptr;
  AgentOptions options_;
  TrainerSlotOptions slot_options_;
};

}  // namespace hpo::agent
