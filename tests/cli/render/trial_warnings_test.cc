#include "cli/render/trial_warnings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TrialWarnings, AreThoseOfTrialsEachOnce) {
  constexpr char kLog[] =
      "2026-11-27T21:15:56.278Z warn model lfs left out: trial #1: no\n"
      "2026-11-27T21:15:57.886Z info trial #0: Trial Start\n"
      "2026-11-27T21:15:57.896Z warn trial #0: model a: the head is new\n"
      "2026-11-27T21:15:57.896Z warn trial #0: data.csv:3: a byte\n"
      "2026-11-27T21:15:58.896Z warn trial #12: model a: the head is new\n"
      "a program's own line warn trial #3: nothing\n"
      "2026-11-27T21:15:58.896Z warn trial #12: third";
  EXPECT_THAT(TrialWarnings(kLog, 5),
              ElementsAre("model a: the head is new", "data.csv:3: a byte", "third"));
  EXPECT_THAT(TrialWarnings(kLog, 1),
              ElementsAre("model a: the head is new", "2 more are in worker.log"));
  EXPECT_THAT(TrialWarnings("", 5), IsEmpty());
}

}  // namespace
}  // namespace hpo::cli
