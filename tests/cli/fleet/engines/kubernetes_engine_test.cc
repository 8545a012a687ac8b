#include "cli/fleet/engines/kubernetes_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/fleet/engines/engine_test.h"

namespace hpo::cli {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kNoObjects[] = R"({"kind": "List", "items": []})";
constexpr char kJobAndPods[] = R"({"kind": "List", "items": [
  {"kind": "Job", "metadata": {"name": "hpo-toy", "labels": {"app.kubernetes.io/instance": "hpo-toy"}},
   "spec": {"suspend": false}, "status": {}},
  {"kind": "Pod", "metadata": {"name": "hpo-toy-0-x",
     "labels": {"app.kubernetes.io/instance": "hpo-toy",
                "batch.kubernetes.io/job-completion-index": "0"},
     "annotations": {"batch.kubernetes.io/job-index-failure-count": "1",
                     "batch.kubernetes.io/job-index-ignored-failure-count": "2"}},
   "spec": {"nodeName": "n1"}, "status": {"phase": "Running", "startTime": "2026-11-28T10:00:00Z"}},
  {"kind": "Pod", "metadata": {"name": "hpo-toy-1-y",
     "labels": {"app.kubernetes.io/instance": "hpo-toy"}},
   "spec": {}, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled",
     "status": "False", "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]}},
  {"kind": "Pod", "metadata": {"name": "hpo-toy-2-z", "deletionTimestamp": "2026-11-28T10:00:00Z",
     "labels": {"app.kubernetes.io/instance": "hpo-toy"}},
   "spec": {"nodeName": "n2"}, "status": {"phase": "Running"}},
  {"kind": "Pod", "metadata": {"name": "hpo-toy-3-w",
     "labels": {"app.kubernetes.io/instance": "hpo-toy"}},
   "spec": {"nodeName": "n2"}, "status": {"phase": "Succeeded"}}]})";
constexpr char kSuspendedJob[] = R"({"items": [{"kind": "Job", "metadata": {"name": "hpo-toy",
  "labels": {"app.kubernetes.io/instance": "hpo-toy"}}, "spec": {"suspend": true}, "status": {}}]})";
constexpr char kEndedJob[] = R"({"items": [{"kind": "Job", "metadata": {"name": "hpo-toy",
  "labels": {"app.kubernetes.io/instance": "hpo-toy"}}, "spec": {},
  "status": {"conditions": [{"type": "Complete", "status": "True"}]}}]})";

absl::Time TenThirty() {
  absl::Time time;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, "2026-11-28T10:30:00Z", &time, nullptr));
  return time;
}

class KubernetesEngineTest : public EngineTest {
 protected:
  FleetPlan Plan() const {
    FleetPlan plan = PlanWithSecret();
    plan.image = "registry/hpo:1";
    return plan;
  }
  void Answer(const std::string& output) { programs_.Add("kubectl", {.output = output}); }

  KubernetesEngine engine_{programs_.means()};
};

TEST_F(KubernetesEngineTest, ReadsPods) {
  const auto found = ParseKubernetesObjects(kJobAndPods, TenThirty());
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<FleetWorker> workers;
  for (const NamedWorker& named : *found) workers.push_back(named.worker);
  using enum FleetWorkerState;
  EXPECT_THAT(
      workers,
      ElementsAre(
          FleetWorker{"hpo-toy-0-x", kRunning, "n1", "", absl::Minutes(30), 3, "hpo-toy-0"},
          FleetWorker{"hpo-toy-1-y", kWaiting, "",
                      "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", std::nullopt, 0},
          FleetWorker{"hpo-toy-2-z", kEnding, "n2", "", std::nullopt, 0}));
}

TEST_F(KubernetesEngineTest, AJobWithoutPodsWaitsUntilItHasEnded) {
  const auto found = ParseKubernetesObjects(kSuspendedJob, TenThirty());
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().fleet, "toy");
  EXPECT_THAT(found->front().worker.reason, HasSubstr("Kueue"));
  EXPECT_EQ(ParseKubernetesObjects(kEndedJob, TenThirty())->size(), 0U);
  EXPECT_TRUE(absl::IsInternal(ParseKubernetesObjects("no", TenThirty()).status()));
}

TEST_F(KubernetesEngineTest, SubmitsTheSecretByAFileThatIsGoneAfterwards) {
  Answer(kNoObjects);
  Answer("");
  const auto submitted = engine_.Submit(Plan());
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_THAT(programs_.calls,
              ElementsAre(StartsWith("kubectl get jobs,pods -l app.kubernetes.io/instance=hpo-toy"),
                          StartsWith("kubectl apply --server-side --force-conflicts -f /"),
                          "kubectl delete job hpo-toy --ignore-not-found",
                          "kubectl create -f " + submitted->kept));
  EXPECT_THAT(programs_.calls, Each(Not(HasSubstr("SECRET"))));
  const std::string& apply = programs_.calls[1];
  EXPECT_NE(access(apply.substr(apply.rfind(' ') + 1).c_str(), F_OK), 0);
}

TEST_F(KubernetesEngineTest, SubmitsNoSecondFleetOfAName) {
  Answer(kSuspendedJob);
  EXPECT_TRUE(absl::IsAlreadyExists(engine_.Submit(Plan()).status()));
}

TEST_F(KubernetesEngineTest, SubmitsNothingThatTheApiRejects) {
  Answer(kNoObjects);
  FleetPlan plan = Plan();
  plan.claim = "X_Y";
  EXPECT_TRUE(absl::IsInvalidArgument(engine_.Submit(plan).status()));
  EXPECT_THAT(programs_.calls, ElementsAre());
}

TEST_F(KubernetesEngineTest, SaysHowAJobHasEnded) {
  Answer(kEndedJob);
  EXPECT_THAT(engine_.HowItEnded("toy").value(), HasSubstr("kubectl describe job hpo-toy; "));
  programs_ = {};
  Answer(kNoObjects);
  EXPECT_EQ(engine_.HowItEnded("toy").value(), "");
}

TEST_F(KubernetesEngineTest, ScalesAndStops) {
  for (const char* const answer : {kJobAndPods, "", kJobAndPods, "", kNoObjects}) Answer(answer);
  ASSERT_TRUE(engine_.Scale("toy", 5).ok());
  EXPECT_EQ(programs_.calls.back(),
            "kubectl patch job hpo-toy --type=merge -p "
            R"({"spec":{"completions":5,"parallelism":5}})");
  ASSERT_TRUE(engine_.Stop("toy", absl::Minutes(1)).ok());
  EXPECT_THAT(programs_.calls, testing::Contains("kubectl delete job hpo-toy --ignore-not-found "
                                                 "--cascade=foreground --wait=false"));
  EXPECT_EQ(programs_.calls.back(), "kubectl delete secret hpo-toy --ignore-not-found");
  EXPECT_TRUE(absl::IsNotFound(engine_.Scale("toy", 1).status()));
}

TEST_F(KubernetesEngineTest, NamesTheContextThatIsMissing) {
  programs_.Add("kubectl", {.status = 1,
                            .errors = "The connection to the server localhost:8080 was refused - "
                                      "did you specify the right host or port?\n"});
  const absl::Status status = engine_.List("").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("kubectl config use-context NAME"));
}

}  // namespace
}  // namespace hpo::cli
