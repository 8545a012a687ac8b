#include "cli/fleet/engines/fleet_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"

namespace hpo::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FleetPlan Plan() {
  FleetPlan plan{.name = "criteria", .study = "criteria", .workers = 8};
  plan.server.address = "server:50051";
  return plan;
}

TEST(FleetName, OfAStudyIsOneThatEveryEngineTakes) {
  EXPECT_EQ(FleetNameOf("criteria"), "criteria");
  EXPECT_EQ(FleetNameOf("My_Study.v2"), "my-study-v2");
  EXPECT_EQ(FleetNameOf("a__b-"), "a-b");
  EXPECT_EQ(FleetNameOf(std::string(39, 'a') + "-bcd"), std::string(39, 'a'));
  for (const char* const study : {"criteria", "My_Study.v2", "9", "x..y"}) {
    EXPECT_TRUE(CheckFleetName(FleetNameOf(study)).ok()) << study;
  }
}

TEST(FleetName, IsTheLabelWithoutItsPrefix) {
  EXPECT_EQ(NameOfLabel(FleetLabel("criteria")), "criteria");
  for (const char* const other : {"criteria", "hpo-", "hpo-A", "xhpo-a", "hpo-a b"}) {
    EXPECT_EQ(NameOfLabel(other), std::nullopt) << other;
  }
}

TEST(CheckPlan, RejectsWhatNoEngineCanDo) {
  EXPECT_TRUE(CheckPlan(Plan()).ok());
  FleetPlan short_time = Plan();
  short_time.time = absl::Seconds(30);
  EXPECT_EQ(CheckPlan(short_time).message(), "--time: expected at least 1m, got 30s");
  FleetPlan without_memory = Plan();
  without_memory.gpus_per_worker = 0;
  EXPECT_THAT(std::string(CheckPlan(without_memory).message()),
              HasSubstr("expected --memory SIZE too"));
  without_memory.worker_options = {"--memory-limit=1GiB"};
  EXPECT_TRUE(CheckPlan(without_memory).ok());
  FleetPlan typed = Plan();
  typed.gpus_per_worker = 0;
  typed.gpu_type = "a100";
  EXPECT_THAT(std::string(CheckPlan(typed).message()), HasSubstr("--gpu-type"));
  FleetPlan named = Plan();
  named.name = "a b";
  EXPECT_THAT(std::string(CheckPlan(named).message()), HasSubstr("got 'a b'"));
}

TEST(CheckPlan, TakesNoWordThatCouldEndItsLine) {
  const std::string bad[] = {"a\nb",       "a\rb",           "a\tb",           "a\x1b[31m", "a\x7f",
                             "a\xc2\x85z", "a\xe2\x80\xa8z", "a\xe2\x80\xa9z", "a\xff"};
  using Change = void (*)(FleetPlan&, const std::string&);
  const Change changes[] = {
      [](FleetPlan& plan, const std::string& text) { plan.study = text; },
      [](FleetPlan& plan, const std::string& text) { plan.gpu_type = text; },
      [](FleetPlan& plan, const std::string& text) { plan.checkpoints = text; },
      [](FleetPlan& plan, const std::string& text) { plan.image = text; },
      [](FleetPlan& plan, const std::string& text) { plan.queue = text; },
      [](FleetPlan& plan, const std::string& text) { plan.claim = text; },
      [](FleetPlan& plan, const std::string& text) { plan.server.address = text; },
      [](FleetPlan& plan, const std::string& text) { plan.server.join_file = text; },
      [](FleetPlan& plan, const std::string& text) { plan.folder = text; },
      [](FleetPlan& plan, const std::string& text) { plan.setup = {text}; },
      [](FleetPlan& plan, const std::string& text) {
        plan.worker_options = {"--study", text};
      },
      [](FleetPlan& plan, const std::string& text) { plan.engine_options = {"--qos=" + text}; }};
  for (const Change change : changes) {
    for (const std::string& text : bad) {
      FleetPlan plan = Plan();
      change(plan, text);
      const std::string message(CheckPlan(plan).message());
      EXPECT_THAT(message, HasSubstr("text of one line")) << absl::CHexEscape(text);
      EXPECT_THAT(message, testing::Not(HasSubstr(text)));
    }
    FleetPlan plan = Plan();
    change(plan, "\xc3\xa9 \xe2\x80\xa6 $(x) 'y' \xc2\xa0");
    EXPECT_TRUE(CheckPlan(plan).ok()) << CheckPlan(plan);
  }
}

TEST(CheckPlan, TakesNoSecretAmongTheWorkersOptions) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--join", "hpo1.a.b@h:1"}, {"--join=hpo1.a.b@h:1"}}) {
    FleetPlan plan = Plan();
    plan.worker_options = words;
    const absl::Status status = CheckPlan(plan);
    EXPECT_THAT(std::string(status.message()), HasSubstr("HPO_JOIN_FILE"));
    EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("hpo1")));
  }
}

TEST(WorkerWords, NameTheVisibleGpusUnlessADeviceIsGiven) {
  FleetPlan plan = Plan();
  plan.checkpoints = "/shared/c";
  EXPECT_THAT(WorkerWords(plan, "hpo-worker"),
              ElementsAre("hpo-worker", "--gpu", "visible", "--study", "criteria", "--checkpoints",
                          "/shared/c"));
  plan = Plan();
  plan.worker_options = {"--device", "cpu", "--memory-limit", "1GiB"};
  EXPECT_THAT(WorkerWords(plan, "w"),
              ElementsAre("w", "--study", "criteria", "--device", "cpu", "--memory-limit", "1GiB"));
  plan.worker_options = {"--gpu=0"};
  EXPECT_THAT(WorkerWords(plan, "w"), ElementsAre("w", "--study", "criteria", "--gpu=0"));
}

TEST(WorkerWords, LeaveRoomForTheWorkerItselfWithoutGpus) {
  FleetPlan plan = Plan();
  plan.gpus_per_worker = 0;
  plan.memory_per_worker = GiB(8);
  EXPECT_THAT(WorkerWords(plan, "w"), ElementsAre("w", "--device", "cpu", "--memory-limit",
                                                  "7168MiB", "--study", "criteria"));
}

TEST(WordLines, KeepAnOptionAndItsValueOnOneLine) {
  EXPECT_EQ(WordLines({"/a b/w", "--models", "~/m", "--stay"}),
            "  '/a b/w'\n  --models '~/m'\n  --stay");
}

TEST(PlanCommand, GivesWhatDiffersFromTheDefaults) {
  FleetPlan plan = Plan();
  EXPECT_EQ(PlanCommand("slurm", plan), "hpo fleet slurm --workers 8 --study criteria");
  plan.name = "other";
  plan.gpus_per_worker = 2;
  plan.time = absl::Hours(8);
  plan.setup = {"module load cuda"};
  plan.engine_options = {"--account=a"};
  plan.worker_options = {"--stay"};
  plan.server.join = "hpo1.secret";
  EXPECT_EQ(
      PlanCommand("slurm", plan),
      "hpo fleet slurm --workers 8 --name other --study criteria --gpus-per-worker 2 --time 8h "
      "--setup 'module load cuda' --option=--account=a -- --stay");
}

TEST(ClockText, CountsHoursBeyondADay) {
  EXPECT_EQ(ClockText(absl::Minutes(1)), "00:01:00");
  EXPECT_EQ(ClockText(absl::Hours(50) + absl::Seconds(61)), "50:01:01");
}

TEST(IsLoopback, IsWhatOtherMachinesCannotReach) {
  for (const char* const own : {"127.0.0.1:50051", "localhost:1", "[::1]:1", "unix:/tmp/s"}) {
    EXPECT_TRUE(IsLoopback(own)) << own;
  }
  EXPECT_FALSE(IsLoopback("10.0.0.1:50051"));
}

}  // namespace
}  // namespace hpo::cli
