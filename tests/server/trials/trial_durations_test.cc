#include "server/trials/trial_durations.h"

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

// A trial of the next number.
Trial CompletedAfter(absl::Duration took) {
  static int64_t number = 0;
  Trial trial;
  trial.id.number = TrialNumber{number++};
  trial.state = TrialState::kCompleted;
  trial.started = absl::FromUnixSeconds(1'700'000'000);
  trial.ended = trial.started + took;
  return trial;
}

TEST(TrialDurations, AreTheLongestOfTheLast) {
  TrialDurations durations;
  EXPECT_EQ(durations.Longest(), absl::ZeroDuration());
  durations.Publish(CompletedAfter(absl::Hours(3)), AttemptNumber{1});
  durations.Publish(CompletedAfter(absl::Hours(2)), AttemptNumber{1});
  EXPECT_EQ(durations.Longest(), absl::Hours(3));
  for (size_t i = 0; i + 1 < TrialDurations::kMost; ++i) {
    durations.Publish(CompletedAfter(absl::Hours(1)), AttemptNumber{1});
  }
  EXPECT_EQ(durations.Longest(), absl::Hours(2)) << "the first is forgotten";
}

TEST(TrialDurations, CountOnlyWhatRanAtOneGo) {
  TrialDurations durations;
  durations.Publish(CompletedAfter(absl::Hours(3)), AttemptNumber{2});
  durations.Publish(CompletedAfter(-absl::Hours(3)), AttemptNumber{1});  // the clock was set back
  Trial pruned = CompletedAfter(absl::Hours(3));
  pruned.state = TrialState::kPruned;
  durations.Publish(pruned, AttemptNumber{1});
  Trial imported = CompletedAfter(absl::Hours(3));
  imported.started = absl::InfinitePast();
  durations.Publish(imported, AttemptNumber{1});
  EXPECT_EQ(durations.Longest(), absl::ZeroDuration());
}

}  // namespace
}  // namespace hpo::server
