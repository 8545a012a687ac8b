#include "cli/fleet/engines/sky_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "cli/fleet/engines/fleet_files.h"
#include "tests/cli/fleet/engines/engine_test.h"

namespace hpo::cli {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kTwoJobs[] = R"([
  {"job_id": 8, "job_name": "hpo-toy-1", "status": "RECOVERING", "infra": null,
   "details": "preempted", "job_duration": 3.0, "recovery_count": 2},
  {"job_id": 7, "job_name": "hpo-toy-0", "status": "RUNNING", "infra": "aws/us-east-1",
   "details": null, "job_duration": 60.0, "recovery_count": 0},
  {"job_id": 6, "job_name": "hpo-toy-2", "status": "FAILED_SETUP"},
  {"job_id": 5, "job_name": "another", "status": "RUNNING"}])";

class SkyEngineTest : public EngineTest {
 protected:
  void SetUp() override { setenv("XDG_STATE_HOME", folder_.path().c_str(), 1); }
  FleetPlan Plan() const {
    FleetPlan plan = PlanWithSecret();
    plan.gpu_type = "A100";
    plan.folder = FleetFolder("toy");
    return plan;
  }
  void Answer(const std::string& output) { programs_.Add("sky", {.output = output}); }

  SkyEngine engine_{programs_.means()};
};

TEST_F(SkyEngineTest, ReadsJobs) {
  const auto found = ParseSkyJobs(kTwoJobs);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2U);
  using enum FleetWorkerState;
  EXPECT_EQ((*found)[0].worker, (FleetWorker{"7 hpo-toy-0", kRunning, "aws/us-east-1", "",
                                             absl::Minutes(1), 0, "hpo-toy-0"}));
  EXPECT_EQ((*found)[1].worker,
            (FleetWorker{"8 hpo-toy-1", kWaiting, "", "preempted", std::nullopt, 2, "hpo-toy-1"}));
  EXPECT_TRUE(absl::IsInternal(ParseSkyJobs("Fetching...").status()));
}

TEST_F(SkyEngineTest, HasNoJobsBeforeTheFirstOne) {
  const char* const complaint = "sky.exceptions.ClusterNotUpError: No in-progress managed jobs.\n";
  programs_.Add("sky", {.status = 1, .errors = complaint});
  EXPECT_EQ(engine_.List("").value().size(), 0U);
  programs_ = {};
  programs_.Add("sky", {.status = 1, .errors = "no credentials\n"});
  EXPECT_TRUE(absl::IsUnavailable(engine_.List("").status()));
}

TEST_F(SkyEngineTest, LaunchesAJobForEachWorkerWithTheSecretInAFile) {
  Answer("[]");
  const FleetPlan plan = Plan();
  ASSERT_TRUE(engine_.Submit(plan).ok());
  const std::string files = "--secret-file " + plan.folder + "/secrets.env " + plan.folder;
  EXPECT_THAT(programs_.calls,
              ElementsAre("sky jobs queue --skip-finished --output json",
                          "sky jobs launch --yes --async --name hpo-toy-0 --env "
                          "HPO_WORKER_NAME=hpo-toy-0 " +
                              files + "/fleet.yaml",
                          StartsWith("sky jobs launch --yes --async --name hpo-toy-1 ")));
  EXPECT_THAT(programs_.calls, Each(Not(HasSubstr("SECRET"))));
  EXPECT_THAT(engine_.Script(plan).value(), Not(HasSubstr("SECRET")));
  struct stat facts {};
  ASSERT_EQ(stat((plan.folder + "/secrets.env").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(SkyEngineTest, GrowsByNumbersThatAreFree) {
  Answer(kTwoJobs);
  ASSERT_TRUE(engine_.Scale("toy", 3).ok());
  EXPECT_THAT(programs_.calls.back(),
              StartsWith("sky jobs launch --yes --async --name hpo-toy-2 "));
}

TEST_F(SkyEngineTest, ShrinksAndStopsByTheNumbersOfJobs) {
  for (const char* const answer : {kTwoJobs, "", kTwoJobs, "", "[]"}) Answer(answer);
  ASSERT_TRUE(engine_.Scale("toy", 1).ok());
  EXPECT_EQ(programs_.calls.back(), "sky jobs cancel --yes 8");
  ASSERT_TRUE(engine_.Stop("toy", absl::Minutes(1)).ok());
  EXPECT_THAT(programs_.calls, testing::Contains("sky jobs cancel --yes 7 8"));
  EXPECT_TRUE(absl::IsNotFound(engine_.Scale("toy", 1).status()));
}

}  // namespace
}  // namespace hpo::cli
