#include "server/trials/time_by_use.h"

#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

struct Case {
  const char* state;
  const char* outcome;
  char letter;
  absl::Duration TimeByUse::*part;
};

constexpr Case kCases[] = {
    {"FINISHED", "completed", 'U', &TimeByUse::useful},
    {"FINISHED", "out_of_memory", 'O', &TimeByUse::out_of_memory},
    // It is known what became of it, although another worker has the trial.
    {"SUPERSEDED", "out_of_memory", 'O', &TimeByUse::out_of_memory},
    {"FINISHED", "stopped_by_pruner", 'P', &TimeByUse::pruned},
    {"FINISHED", "failed", 'F', &TimeByUse::failed},
    {"FINISHED", "cancelled", 'X', &TimeByUse::cancelled},
    {"RELEASED", "", 'E', &TimeByUse::preempted},
    {"LOST", "", 'L', &TimeByUse::lost},
    {"SUPERSEDED", "completed", 'L', &TimeByUse::lost},
};

TEST(TimeByUse, EachEndHasItsUse) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(std::string(test.state) + " " + test.outcome);
    EXPECT_EQ(LetterOf(UseOf(test.state, test.outcome)), test.letter);
    TimeByUse expected;
    expected.*test.part = absl::Minutes(5);
    EXPECT_EQ(
        SumByUse({{.state = test.state, .outcome = test.outcome, .duration = absl::Minutes(5)}}, 1),
        expected);
  }
}

TEST(TimeByUse, ATrialOnSeveralGpusTakesTheTimeOfEach) {
  const std::vector<AttemptStore::EndedTime> times = {
      {.state = "FINISHED", .outcome = "completed", .duration = absl::Hours(2)},
      {.state = "LOST", .outcome = "", .duration = absl::Minutes(30)},
      {.state = "SUPERSEDED", .outcome = "", .duration = absl::Minutes(15)}};
  const TimeByUse uses = SumByUse(times, 4);
  EXPECT_EQ(uses.useful, absl::Hours(8));
  EXPECT_EQ(uses.lost, absl::Hours(3));
  EXPECT_EQ(uses.pruned, absl::ZeroDuration());
}

}  // namespace
}  // namespace hpo::server
