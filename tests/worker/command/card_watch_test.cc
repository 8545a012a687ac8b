#include "worker/command/card_watch.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

class FakeCard final : public GpuProbe {
 public:
  absl::StatusOr<std::vector<GpuState>> List() override { return std::vector{state}; }
  absl::StatusOr<GpuState> Read(const std::string&) override {
    if (lost) return absl::UnavailableError("lost");
    return state;
  }

  GpuState state;
  bool lost = false;
};

class CardWatchTest : public testing::Test {
 protected:
  void SetProcesses(std::vector<GpuProcess> processes) {
    card_.state.used = MiB(100);
    for (const GpuProcess& process : processes) card_.state.used += process.used.value_or(MiB(50));
    card_.state.processes = std::move(processes);
  }

  FakeCard card_;
};

TEST_F(CardWatchTest, CountsTheProgramsProcessesAndNoOthers) {
  SetProcesses({{.pid = 7, .used = GiB(2)}});
  CardWatch watch(card_, card_.state, /*same_numbers=*/true);
  EXPECT_EQ(watch.Held({11, 12}), Bytes());
  SetProcesses({{.pid = 7, .used = GiB(4)},
                {.pid = 11, .used = GiB(1)},
                {.pid = 12, .used = MiB(300)},
                {.pid = 13, .used = GiB(8)}});
  EXPECT_EQ(watch.Held({11, 12}), GiB(1) + MiB(300));
}

TEST_F(CardWatchTest, TakesNewProcessesForTheProgramInAContainer) {
  SetProcesses({{.pid = 70007, .used = GiB(2)}});
  CardWatch watch(card_, card_.state, /*same_numbers=*/false);
  SetProcesses({{.pid = 70007, .used = GiB(3)}, {.pid = 70011, .used = GiB(1)}});
  EXPECT_EQ(watch.Held({11, 12}), GiB(1));
}

TEST_F(CardWatchTest, InAContainerThatHasTheDriversNumbersOthersAreNotTaken) {
  SetProcesses({});
  CardWatch watch(card_, card_.state, /*same_numbers=*/false);
  SetProcesses({{.pid = 11, .used = GiB(1)}});
  EXPECT_EQ(watch.Held({11}), GiB(1));
  SetProcesses({{.pid = 11, .used = GiB(1)}, {.pid = 13, .used = GiB(1)}});
  EXPECT_EQ(watch.Held({11}), GiB(1));
}

TEST_F(CardWatchTest, GoesByWhatTheCardHasInUseWhereTheDriverTellsNoMore) {
  SetProcesses({{.pid = 7, .used = GiB(2)}});
  CardWatch watch(card_, card_.state, /*same_numbers=*/true);
  SetProcesses({{.pid = 7, .used = GiB(2)}, {.pid = 11, .used = std::nullopt}});
  EXPECT_EQ(watch.Held({11}), MiB(50));

  SetProcesses({});
  CardWatch unlisted(card_, card_.state, /*same_numbers=*/false);
  card_.state.used += GiB(3);
  EXPECT_EQ(unlisted.Held({11}), GiB(3));
}

TEST_F(CardWatchTest, ACardThatDoesNotAnswerTellsNothing) {
  CardWatch watch(card_, card_.state, /*same_numbers=*/true);
  card_.lost = true;
  EXPECT_EQ(watch.Held({11}), Bytes());
}

}  // namespace
}  // namespace hpo::command
