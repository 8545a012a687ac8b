#include "cli/fleet/engines/ray_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/files/read_file.h"
#include "tests/cli/fleet/engines/engine_test.h"

namespace hpo::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kTwoActors[] =
    R"([{"fleet": "toy", "id": "ray-toy-0", "state": "running", "node": "10.0.0.7", "reason": "",
         "running_for_s": 31.5, "restarts": 1},
        {"fleet": "toy", "id": "ray-toy-1", "state": "waiting", "node": "",
         "reason": "waits for 1 GPU", "running_for_s": null, "restarts": null}])";

class RayEngineTest : public EngineTest {
 protected:
  void Answer(const std::string& output) { programs_.Add("python3", {.output = output}); }

  RayEngine engine_{programs_.means()};
};

TEST_F(RayEngineTest, ReadsTheWorkers) {
  const auto workers = ParseRayWorkers(kTwoActors);
  ASSERT_TRUE(workers.ok()) << workers.status();
  ASSERT_EQ(workers->size(), 2U);
  EXPECT_EQ((*workers)[0].fleet, "toy");
  EXPECT_EQ((*workers)[0].worker, (FleetWorker{.id = "ray-toy-0",
                                               .state = FleetWorkerState::kRunning,
                                               .node = "10.0.0.7",
                                               .running_for = absl::Seconds(31.5),
                                               .restarts = 1,
                                               .name = "ray-toy-0"}));
  EXPECT_EQ((*workers)[1].worker,
            (FleetWorker{.id = "ray-toy-1", .reason = "waits for 1 GPU", .name = "ray-toy-1"}));
  for (const char* const wrong : {"", "7", R"([{"id": 3}])"}) {
    EXPECT_TRUE(absl::IsInternal(ParseRayWorkers(wrong).status())) << wrong;
  }
}

TEST_F(RayEngineTest, SubmitsAFolderWithTheScriptAndTheSecretAlone) {
  Answer("[]");
  Answer(R"({"id": "hpo-toy-1", "notes": ["no node has 8 GPUs"]})");
  const FleetPlan plan = PlanWithSecret();
  const auto submitted = engine_.Submit(plan);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->id, "hpo-toy-1");
  EXPECT_THAT(submitted->notes, ElementsAre("no node has 8 GPUs"));
  EXPECT_EQ(programs_.calls.back(), "python3 -m hpo.ray.jobs submit toy " + plan.folder + "/job 1");
  EXPECT_EQ(ReadFile(submitted->kept).value(), engine_.Script(plan).value());
  EXPECT_THAT(engine_.Script(plan).value(), Not(HasSubstr("SECRET")));
  const std::string join = plan.folder + "/job/join";
  EXPECT_EQ(ReadFile(join).value(), "hpo1.hash.SECRET@host:50051\n");
  struct stat facts {};
  ASSERT_EQ(stat(join.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(RayEngineTest, LeavesNoOldSecretInTheFolder) {
  Answer("[]");
  Answer(R"({"id": "hpo-toy-1"})");
  Answer("[]");
  Answer(R"({"id": "hpo-toy-2"})");
  const FleetPlan plan = PlanWithSecret();
  ASSERT_TRUE(engine_.Submit(plan).ok());
  ASSERT_TRUE(engine_.Submit(Plan()).ok());
  EXPECT_NE(access((plan.folder + "/job/join").c_str(), F_OK), 0);
}

TEST_F(RayEngineTest, SubmitsNoSecondFleetOfAName) {
  Answer(kTwoActors);
  EXPECT_TRUE(absl::IsAlreadyExists(engine_.Submit(Plan()).status()));
}

TEST_F(RayEngineTest, ScalesAndStops) {
  for (const char* const answer : {kTwoActors, "{}", kTwoActors, "{}", "[]"}) Answer(answer);
  EXPECT_EQ(engine_.Scale("toy", 5).value(), "asked to have 5 workers");
  EXPECT_EQ(programs_.calls.back(), "python3 -m hpo.ray.jobs scale toy 5");
  EXPECT_TRUE(engine_.Stop("toy", absl::Minutes(1)).ok());
  EXPECT_THAT(programs_.calls, testing::Contains("python3 -m hpo.ray.jobs stop toy 60"));
  EXPECT_THAT(programs_.told,
              ElementsAre("fleet toy: 2 workers left, told to save trials and to end"));
  EXPECT_TRUE(absl::IsNotFound(engine_.Scale("toy", 1).status()));
}

TEST_F(RayEngineTest, SaysWhatBecomesOfWorkersThatAreLeftOut) {
  for (const char* const answer : {kTwoActors, "{}"}) Answer(answer);
  EXPECT_EQ(engine_.Scale("toy", 1).value(),
            "asked to have 1 worker; those that are left out requeue their trials first");
}

TEST_F(RayEngineTest, SaysHowAJobHasEnded) {
  Answer(R"({"id": "hpo-toy-1", "status": "FAILED", "said": "no option --bogus"})");
  EXPECT_EQ(engine_.HowItEnded("toy").value(),
            "its last job hpo-toy-1 has ended: FAILED: no option --bogus; its log: ray job logs "
            "hpo-toy-1");
  EXPECT_EQ(programs_.calls.back(), "python3 -m hpo.ray.jobs end toy");
  EXPECT_LT(programs_.patience.back(), absl::InfiniteDuration());
  programs_ = {};
  Answer("{}");
  EXPECT_EQ(engine_.HowItEnded("toy").value(), "");
}

TEST_F(RayEngineTest, SaysWhichPythonItNeeds) {
  EXPECT_THAT(std::string(engine_.List("").status().message()),
              HasSubstr("python3 is not in PATH"));
  programs_.Add("python3", {.status = 1, .errors = "/usr/bin/python3: No module named hpo\n"});
  const absl::Status status = engine_.List("").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the wheel hpo-service"));
}

}  // namespace
}  // namespace hpo::cli
