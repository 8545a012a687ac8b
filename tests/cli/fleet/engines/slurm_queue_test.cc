#include "cli/fleet/engines/slurm_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

using enum FleetWorkerState;
using testing::ElementsAre;
using testing::IsEmpty;

NamedWorker Worker(const std::string& id, FleetWorkerState state) {
  return {.fleet = "a", .worker = {.id = id, .state = state}};
}

// As Slurm 22.05 printed it, with a job that is no fleet's.
constexpr char kPrinted[] =
    "6_3|PENDING||0:00|Resources|hpo-toy\n"
    "6_0|RUNNING|n1|1-00:00:31|None|hpo-toy\n"
    "6_1|COMPLETING|n0|0:07|None|hpo-toy\n"
    "9|RUNNING|n1|0:31|None|interactive\n";

TEST(SlurmQueue, HasTheTasksOfFleets) {
  const auto workers = ParseSlurmQueue(kPrinted);
  ASSERT_TRUE(workers.ok()) << workers.status();
  ASSERT_EQ(workers->size(), 3);
  EXPECT_EQ((*workers)[0].fleet, "toy");
  EXPECT_EQ(
      (*workers)[0].worker,
      (FleetWorker{.id = "6_3", .state = kWaiting, .reason = "Resources", .name = "slurm-6_3"}));
  EXPECT_EQ((*workers)[1].worker, (FleetWorker{.id = "6_0",
                                               .state = kRunning,
                                               .node = "n1",
                                               .running_for = absl::Hours(24) + absl::Seconds(31),
                                               .name = "slurm-6_0"}));
  EXPECT_EQ((*workers)[2].worker,
            (FleetWorker{.id = "6_1", .state = kEnding, .node = "n0", .name = "slurm-6_1"}));
}

TEST(SlurmQueue, RejectsLinesOfAnotherForm) {
  EXPECT_THAT(std::string(ParseSlurmQueue("6_3|PENDING\n").status().message()),
              testing::HasSubstr("got '6_3|PENDING'"));
}

TEST(TasksToEnd, AreThoseThatWaitAndThenTheLastOnes) {
  const std::vector<NamedWorker> workers = {Worker("6_0", kRunning),  Worker("6_1", kRunning),
                                            Worker("6_10", kRunning), Worker("6_2", kWaiting),
                                            Worker("7_0", kWaiting),  Worker("6_3", kEnding)};
  EXPECT_THAT(TasksToEnd(workers, 4), ElementsAre("7_0"));
  EXPECT_THAT(TasksToEnd(workers, 2), ElementsAre("7_0", "6_2", "6_10"));
  EXPECT_THAT(TasksToEnd(workers, 5), IsEmpty());
  EXPECT_THAT(TasksToEnd(workers, 9), IsEmpty());
}

TEST(JobOfTask, IsThatOfTheArray) {
  EXPECT_EQ(JobOfTask("12_7"), "12");
  EXPECT_EQ(JobOfTask("12"), "12");
}

}  // namespace
}  // namespace hpo::cli
