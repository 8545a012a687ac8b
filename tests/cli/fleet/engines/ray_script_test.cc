#include "cli/fleet/engines/ray_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RayScript, CallsHpoRayWithThePlan) {
  FleetPlan plan{.name = "toy", .study = "a \"study\"", .workers = 8};
  plan.server.address = "10.0.0.1:50051";
  plan.gpu_type = "A100";
  plan.cpus_per_worker = 4;
  plan.memory_per_worker = Bytes{int64_t{1} << 30};
  plan.checkpoints = "/shared/hpo";
  plan.worker_options = {"--models", "/m"};
  EXPECT_THAT(RayScript(plan), HasSubstr(R"(    hpo.ray.run(
        8,
        name="toy",
        study="a \"study\"",
        server="10.0.0.1:50051",
        gpus_per_worker=1,
        gpu_type="A100",
        cpus_per_worker=4,
        memory_per_worker=1073741824,
        checkpoints="/shared/hpo",
        options=["--gpu", "visible", "--models", "/m"],
    )
)"));
}

TEST(RayScript, ReadsTheSecretFromAFileBesideIt) {
  FleetPlan plan{.name = "toy"};
  plan.server.join = "hpo1.hash.SECRET@host:50051";
  const std::string script = RayScript(plan);
  EXPECT_THAT(script, HasSubstr("with_name(\"join\")"));
  EXPECT_THAT(script, Not(HasSubstr("server=")));
  EXPECT_THAT(script, Not(HasSubstr("SECRET")));
}

TEST(RayScript, LimitsTheMemoryOfTrialsOnCpus) {
  FleetPlan plan{.name = "toy", .gpus_per_worker = 0};
  plan.memory_per_worker = Bytes{int64_t{8} << 30};
  EXPECT_THAT(RayScript(plan),
              HasSubstr(R"(options=["--device", "cpu", "--memory-limit", "7168MiB"],)"));
}

}  // namespace
}  // namespace hpo::cli
