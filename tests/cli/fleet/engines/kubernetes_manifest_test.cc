#include "cli/fleet/engines/kubernetes_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

FleetPlan PlanOfPods() {
  FleetPlan plan{.name = "toy", .study = "toy", .workers = 8};
  plan.image = "registry/hpo:1";
  plan.server.address = "10.0.0.1:50051";
  return plan;
}

TEST(KubernetesManifest, RunsAWorkerInEachPod) {
  const std::string manifest = KubernetesManifest(PlanOfPods());
  for (const char* const part :
       {"  name: hpo-toy\n", "  completions: 8\n  parallelism: 8\n", "image: \"registry/hpo:1\"\n",
        "            - \"hpo-worker\"\n            - \"--gpu\"\n            - \"visible\"\n",
        "            - {name: HPO_SERVER, value: \"10.0.0.1:50051\"}\n",
        "          resources:\n            limits:\n              nvidia.com/gpu: 1\n"}) {
    EXPECT_THAT(manifest, HasSubstr(part));
  }
  EXPECT_THAT(manifest, Not(HasSubstr("kueue")));
  EXPECT_THAT(manifest, Not(HasSubstr("secret")));
  EXPECT_THAT(manifest, Not(HasSubstr("suspend")));
}

TEST(KubernetesManifest, HasWhatTheOptionsAskFor) {
  FleetPlan plan = PlanOfPods();
  plan.queue = "research";
  plan.claim = "disk";
  plan.gpu_type = "NVIDIA-A100";
  plan.time = absl::Hours(8);
  plan.cpus_per_worker = 4;
  plan.memory_per_worker = Bytes{int64_t{1} << 30};
  plan.setup = {"ulimit -c 0"};
  plan.worker_options = {"--trainer", "python $(pwd)/a.py"};
  const std::string manifest = KubernetesManifest(plan);
  for (const char* const part :
       {"    kueue.x-k8s.io/queue-name: \"research\"\n", "  suspend: true", "claimName: \"disk\"",
        "mountPath: /shared}", "nodeSelector: {nvidia.com/gpu.product: \"NVIDIA-A100\"}",
        "activeDeadlineSeconds: 28800", "cpu: 4\n", "memory: 1024Mi\n",
        "- \"ulimit -c 0\\nexec \\\"$@\\\"\"\n", "- \"python $$(pwd)/a.py\"\n"}) {
    EXPECT_THAT(manifest, HasSubstr(part));
  }
}

TEST(KubernetesManifest, MountsTheSecretThatIsAManifestOfItsOwn) {
  FleetPlan plan = PlanOfPods();
  plan.server = {.join = "hpo1.hash.SECRET@host:50051"};
  const std::string manifest = KubernetesManifest(plan);
  EXPECT_THAT(manifest, HasSubstr("{name: HPO_JOIN_FILE, value: /etc/hpo-join/join}"));
  EXPECT_THAT(manifest, HasSubstr("secret: {secretName: hpo-toy, defaultMode: 0440}"));
  EXPECT_THAT(manifest, Not(HasSubstr("SECRET")));
  EXPECT_THAT(manifest,
              HasSubstr("#   printf '%s\\n' \"$HPO_JOIN\" | kubectl create secret generic "
                        "hpo-toy --from-file=join=/dev/stdin\n"));
  plan.server = {.join_file = "/home/me/my join"};
  EXPECT_THAT(KubernetesManifest(plan),
              HasSubstr("#   kubectl create secret generic hpo-toy --from-file=join='/home/me/my "
                        "join'\n"));
  EXPECT_THAT(KubernetesSecret(plan, "abc"), HasSubstr("  join: YWJjCg==\n"));
}

std::string KubernetesComplaint(const absl::Status& status) {
  return status.ok() ? "" : std::string(status.message());
}

TEST(CheckKubernetesWords, KnowsAnImage) {
  FleetPlan plan;
  for (const char* const image :
       {"hpo", "registry/hpo:1", "Host.example:5000/team/hpo_x:v1.2-A", "ghcr.io/a/b@sha256:0af1",
        "localhost:5000/hpo", "docker.io/library/debian:12-slim"}) {
    plan.image = image;
    EXPECT_EQ(KubernetesComplaint(CheckKubernetesWords(plan)), "") << image;
  }
  for (const char* const image :
       {"bad image", "", "Hpo", "a//b", "a/b:", "a/B", "a:b c", "a@", "-a", "http://a/b"}) {
    plan.image = image;
    EXPECT_THAT(KubernetesComplaint(CheckKubernetesWords(plan)), HasSubstr("--image: expected"))
        << image;
  }
}

TEST(CheckKubernetesWords, KnowsNamesOfObjects) {
  FleetPlan plan;
  plan.image = "hpo";
  plan.queue = "team.a-1";
  plan.claim = "disk";
  plan.gpu_type = "NVIDIA-A100-SXM4-80GB";
  EXPECT_EQ(KubernetesComplaint(CheckKubernetesWords(plan)), "");
  for (const char* const claim : {"X_Y", "-a", "a..b", "a b"}) {
    plan.claim = claim;
    EXPECT_THAT(KubernetesComplaint(CheckKubernetesWords(plan)), HasSubstr("--claim: expected"))
        << claim;
  }
  plan.claim = "disk";
  plan.queue = std::string(64, 'a');
  EXPECT_THAT(KubernetesComplaint(CheckKubernetesWords(plan)), HasSubstr("--queue: expected"));
  plan.queue.clear();
  plan.gpu_type = "NVIDIA A100";
  EXPECT_THAT(KubernetesComplaint(CheckKubernetesWords(plan)), HasSubstr("--gpu-type: expected"));
}

}  // namespace
}  // namespace hpo::cli
