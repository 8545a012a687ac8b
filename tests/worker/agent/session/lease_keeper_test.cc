#include "worker/agent/session/lease_keeper.h"

#include <poll.h>

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "tests/fakes/fake_coordinator.h"

namespace hpo::agent {
namespace {

constexpr uint64_t kKeeperSeed = 1;

LeaseRef Lease(int64_t trial) {
  return {.trial = {.study = "s", .number = {trial}}, .attempt = {1}, .token = "t"};
}

class LeaseKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    coordinator_.SetHeartbeatInterval(absl::Milliseconds(2));
    ASSERT_TRUE(session_.Register(coordinator_).ok());
  }

  // Whether the keeper woke us within 20 s.
  bool Woken() {
    pollfd woken{.fd = wake_.fd(), .events = POLLIN, .revents = 0};
    return poll(&woken, 1, 20'000) == 1;
  }

  // Waits until the newest beat satisfies `wanted`.
  template <typename Predicate>
  bool AwaitNewestBeat(Predicate wanted) {
    for (size_t count = 1; count < 5000; ++count) {
      if (!coordinator_.AwaitBeats(coordinator_.beats().size() + 1)) return false;
      if (wanted(coordinator_.beats().back())) return true;
    }
    return false;
  }

  FakeCoordinator coordinator_;
  CpuCapacity capacity_{GiB(1)};
  WorkerSession session_{WorkerFacts{.worker = "w", .instance_key = "k"}};
  WakeUp wake_;
};

TEST_F(LeaseKeeperTest, BeatsWithoutALeaseToo) {
  LeaseKeeper keeper(coordinator_, session_, capacity_, wake_, kKeeperSeed);
  EXPECT_TRUE(coordinator_.AwaitBeats(2));
}

TEST_F(LeaseKeeperTest, BeatsCarryWhatIsHeldAndHowFarItIs) {
  LeaseKeeper keeper(coordinator_, session_, capacity_, wake_, kKeeperSeed);
  keeper.Hold(Lease(4));
  keeper.Update({.lease = Lease(4), .step = 17, .stage = "Training Start", .allocated = MiB(3)});
  keeper.Update({.lease = Lease(5), .step = 99});  // not held
  EXPECT_TRUE(AwaitNewestBeat([](const std::vector<LeaseBeat>& beats) {
    return beats.size() == 1 && beats[0].lease == Lease(4) && beats[0].step == 17 &&
           beats[0].stage == "Training Start" && beats[0].allocated == MiB(3);
  }));
  keeper.Drop(Lease(4));
  EXPECT_TRUE(AwaitNewestBeat([](const std::vector<LeaseBeat>& beats) { return beats.empty(); }));
}

TEST_F(LeaseKeeperTest, ALogIsToldOnceAndAgainToAServerThatForgotIt) {
  LeaseKeeper keeper(coordinator_, session_, capacity_, wake_, kKeeperSeed);
  keeper.Hold(Lease(4));
  const auto tells = [](const std::string& log_tail) {
    return [log_tail](const std::vector<LeaseBeat>& beats) {
      return beats.size() == 1 && beats[0].log_tail == log_tail;
    };
  };
  for (const std::string text : {"one\n", "one\ntwo\n"}) {
    const size_t before = coordinator_.beats().size();
    keeper.Update({.lease = Lease(4), .log_tail = text});
    EXPECT_TRUE(AwaitNewestBeat(tells("")));
    const std::vector<std::vector<LeaseBeat>> beats = coordinator_.beats();
    EXPECT_EQ(std::count_if(beats.begin() + static_cast<std::ptrdiff_t>(before), beats.end(),
                            tells(text)),
              1);
    ASSERT_TRUE(coordinator_.AwaitBeats(coordinator_.beats().size() + 2));
    EXPECT_TRUE(tells("")(coordinator_.beats().back()));
  }
  const size_t before = coordinator_.beats().size();
  coordinator_.ForgetSessions();
  ASSERT_TRUE(coordinator_.AwaitBeats(before + 4));
  const std::vector<std::vector<LeaseBeat>> beats = coordinator_.beats();
  EXPECT_TRUE(std::any_of(beats.begin() + static_cast<std::ptrdiff_t>(before), beats.end(),
                          tells("one\ntwo\n")));
}

TEST_F(LeaseKeeperTest, ADirectiveWakesTheLoopAndStays) {
  LeaseKeeper keeper(coordinator_, session_, capacity_, wake_, kKeeperSeed);
  keeper.Hold(Lease(1));
  EXPECT_EQ(keeper.DirectiveFor(Lease(1)), Directive::kContinue);
  coordinator_.SetDirective(Directive::kLeaseLost);
  ASSERT_TRUE(Woken());
  EXPECT_EQ(keeper.DirectiveFor(Lease(1)), Directive::kLeaseLost);
  coordinator_.SetDirective(Directive::kContinue);
  ASSERT_TRUE(coordinator_.AwaitBeats(coordinator_.beats().size() + 2));
  EXPECT_EQ(keeper.DirectiveFor(Lease(1)), Directive::kLeaseLost);
  EXPECT_EQ(keeper.DirectiveFor(Lease(2)), Directive::kContinue);
}

TEST_F(LeaseKeeperTest, AServerThatForgotTheWorkerGetsItBackWithItsLeases) {
  LeaseKeeper keeper(coordinator_, session_, capacity_, wake_, kKeeperSeed);
  keeper.Hold(Lease(3));
  ASSERT_TRUE(coordinator_.AwaitBeats(1));
  const std::string before = session_.current().session;
  coordinator_.ForgetSessions();
  ASSERT_TRUE(AwaitNewestBeat([this, &before](const std::vector<LeaseBeat>& beats) {
    return session_.current().session != before && beats.size() == 1 && beats[0].lease == Lease(3);
  }));
  EXPECT_EQ(coordinator_.registrations().size(), 2u);
  EXPECT_EQ(coordinator_.registrations().back().instance_key, "k");
}

TEST_F(LeaseKeeperTest, OutlastsAnAbsence) {
  LeaseKeeper keeper(coordinator_, session_, capacity_, wake_, kKeeperSeed);
  keeper.Hold(Lease(1));
  ASSERT_TRUE(coordinator_.AwaitBeats(1));
  coordinator_.SetAway(true);
  ASSERT_TRUE(coordinator_.AwaitRefusals(1));
  const size_t before = coordinator_.beats().size();
  coordinator_.SetAway(false);
  EXPECT_TRUE(coordinator_.AwaitBeats(before + 2));
}

TEST_F(LeaseKeeperTest, EndsAtOnceBetweenTwoDistantBeats) {
  coordinator_.SetHeartbeatInterval(absl::Hours(1));
  const absl::Time start = absl::Now();
  {
    LeaseKeeper keeper(coordinator_, session_, capacity_, wake_, kKeeperSeed);
    ASSERT_TRUE(coordinator_.AwaitBeats(1));
    keeper.Hold(Lease(1));  // does not wait for the hour either
    ASSERT_TRUE(coordinator_.AwaitBeats(2));
  }
  EXPECT_LT(absl::Now() - start, absl::Minutes(1));
  EXPECT_EQ(coordinator_.num_goodbyes(), 1);
  ASSERT_EQ(coordinator_.named_in_goodbye().size(), 1u);
  EXPECT_EQ(coordinator_.named_in_goodbye()[0].lease, Lease(1));
}

TEST_F(LeaseKeeperTest, AServerThatForgotTheWorkerHearsItsGoodbye) {
  coordinator_.SetHeartbeatInterval(absl::Hours(1));
  {
    LeaseKeeper keeper(coordinator_, session_, capacity_, wake_, kKeeperSeed);
    ASSERT_TRUE(coordinator_.AwaitBeats(1));
    coordinator_.ForgetSessions();
  }
  EXPECT_EQ(coordinator_.registrations().size(), 2u);
  EXPECT_EQ(coordinator_.num_goodbyes(), 1);
}

}  // namespace
}  // namespace hpo::agent
