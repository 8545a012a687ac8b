#include "cli/fleet/engines/sky_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SkyTask, HasWhatTheOptionsAskFor) {
  FleetPlan plan{.name = "toy", .study = "toy", .workers = 8, .gpus_per_worker = 2};
  plan.gpu_type = "A100";
  plan.is_spot = true;
  plan.cpus_per_worker = 4;
  plan.memory_per_worker = Bytes{(int64_t{1} << 30) + 1};
  plan.setup = {"pip install hpo-service", "echo done"};
  plan.server.address = "10.0.0.1:50051";
  const std::string task = SkyTask(plan);
  for (const char* const part :
       {"name: hpo-toy\n", "  accelerators: {\"A100\": 2}\n  cpus: 4+\n  memory: 2+\n",
        "use_spot: true\n", "  HPO_SERVER: \"10.0.0.1:50051\"\n",
        "setup: |\n  pip install hpo-service\n  echo done\n",
        "run: |\n  exec \\\n  hpo-worker \\\n    --gpu visible \\\n    --study toy\n"}) {
    EXPECT_THAT(task, HasSubstr(part));
  }
  EXPECT_THAT(task, Not(HasSubstr("secret")));
}

TEST(SkyTask, DeclaresTheSecretWithoutItsValue) {
  FleetPlan plan{.name = "toy"};
  plan.server.join = "hpo1.hash.SECRET@host:50051";
  EXPECT_THAT(SkyTask(plan), HasSubstr("secrets:\n  HPO_JOIN: null\n"));
  EXPECT_THAT(SkyTask(plan), Not(HasSubstr("SECRET@")));
  plan.folder = "/home/me/fleets/toy";
  EXPECT_THAT(SkyTask(plan), HasSubstr(" --secret-file /home/me/fleets/toy/secrets.env FILE\n"));
}

}  // namespace
}  // namespace hpo::cli
