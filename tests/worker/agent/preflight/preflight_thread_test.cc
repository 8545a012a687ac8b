#include "worker/agent/preflight/preflight_thread.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"
#include "tests/fakes/fake_coordinator.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Measures at once, or goes on until it is told to stop.
class FakeRunner final : public DryRunner {
 public:
  std::optional<PreflightReport> Run(const Preflight& preflight, const StopWait& stop) override {
    if (hangs_) {
      running_.Notify();
      while (!stop(absl::Hours(1))) {
      }
      return std::nullopt;
    }
    if (on_run_) on_run_();
    return PreflightReport{.id = preflight.id,
                           .needs = {{.state = PreflightState::kMeasured, .required = MiB(7)}}};
  }

  bool hangs_ = false;
  absl::Notification running_;
  std::function<void()> on_run_;
};

class PreflightThreadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    coordinator_.NeverFinish();
    ASSERT_TRUE(session_.Register(coordinator_).ok());
  }

  void Start() {
    thread_ =
        std::make_unique<PreflightThread>(&services_, session_, stop_, /*seed=*/1,
                                          PreflightTimes{.first_retry = absl::Milliseconds(1),
                                                         .longest_retry = absl::Milliseconds(5)});
  }
  void Add(const std::string& id) { coordinator_.AddPreflight({.id = id}); }

  std::vector<std::string> Reported() {
    std::vector<std::string> ids;
    for (const PreflightReport& report : coordinator_.preflight_reports()) ids.push_back(report.id);
    return ids;
  }

  FakeCoordinator coordinator_;
  WorkerSession session_{WorkerFacts{.worker = "w", .instance_key = "k"}};
  StopSignal stop_;
  FakeRunner runner_;
  PreflightServices services_{.client = coordinator_, .runner = runner_};
  std::unique_ptr<PreflightThread> thread_;
};

TEST_F(PreflightThreadTest, RunsWhatComesAndReports) {
  Add("a");
  Start();
  ASSERT_TRUE(coordinator_.AwaitPreflightReports(1));
  Add("b");
  ASSERT_TRUE(coordinator_.AwaitPreflightReports(2));
  EXPECT_THAT(Reported(), ElementsAre("a", "b"));
  EXPECT_EQ(coordinator_.preflight_reports()[0].needs[0].required, MiB(7));
}

TEST_F(PreflightThreadTest, WaitsForAServerThatIsAway) {
  coordinator_.SetAway(true);
  Start();
  ASSERT_TRUE(coordinator_.AwaitPreflightAsks(3));
  Add("a");
  coordinator_.SetAway(false);
  EXPECT_TRUE(coordinator_.AwaitPreflightReports(1));
}

TEST_F(PreflightThreadTest, SendsAReportAgainUntilItIsTaken) {
  coordinator_.FailPreflightReports({absl::UnavailableError("away"), absl::InternalError("full")});
  Add("a");
  Start();
  ASSERT_TRUE(coordinator_.AwaitPreflightReports(1));
  EXPECT_THAT(Reported(), ElementsAre("a"));
}

TEST_F(PreflightThreadTest, DropsAReportThatTheServerRejects) {
  coordinator_.FailPreflightReports({absl::InvalidArgumentError("a byte too many")});
  Add("a");
  Add("b");
  Start();
  ASSERT_TRUE(coordinator_.AwaitPreflightReports(1));
  EXPECT_THAT(Reported(), ElementsAre("b"));
}

TEST_F(PreflightThreadTest, DropsTheReportOfASessionThatIsForgotten) {
  runner_.on_run_ = [this] {
    runner_.on_run_ = nullptr;
    coordinator_.ForgetSessions();
  };
  Add("a");
  Add("b");
  Start();
  // It registers again for the next question.
  ASSERT_TRUE(coordinator_.AwaitPreflightReports(1));
  EXPECT_THAT(Reported(), ElementsAre("b"));
  EXPECT_EQ(coordinator_.registrations().size(), 2u);
}

TEST_F(PreflightThreadTest, EndsADryRunThatGoesOn) {
  runner_.hangs_ = true;
  Add("a");
  Start();
  runner_.running_.WaitForNotification();
  thread_.reset();
  EXPECT_THAT(Reported(), IsEmpty());
}

TEST_F(PreflightThreadTest, EndsADryRunWhenTheWorkerDrains) {
  runner_.hangs_ = true;
  Add("a");
  Start();
  runner_.running_.WaitForNotification();
  stop_.Raise();
  thread_.reset();
  EXPECT_THAT(Reported(), IsEmpty());
}

TEST_F(PreflightThreadTest, DoesNothingWithoutServices) {
  const PreflightThread none(nullptr, session_, stop_, /*seed=*/1);
  EXPECT_EQ(coordinator_.num_preflight_asks(), 0);
}

}  // namespace
}  // namespace hpo::agent
