#include "worker/agent/engine/engine_name.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

using Environment = std::map<std::string, std::string>;

std::string NameIn(const Environment& environment, const std::string& host = "node7") {
  return EngineWorkerName(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
      },
      host);
}

TEST(EngineWorkerName, IsThePlaceInTheFleet) {
  const std::pair<Environment, std::string> cases[] = {
      {{}, ""},
      {{{"SLURM_JOB_ID", "12"}}, "slurm-12"},
      {{{"SLURM_JOB_ID", "17"}, {"SLURM_ARRAY_JOB_ID", "12"}, {"SLURM_ARRAY_TASK_ID", "5"}},
       "slurm-12_5"},
      {{{"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}, "slurm-12"},
      {{{"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}},
       "slurm-12.3"},
      // A batch script has the number of tasks, but is one process.
      {{{"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, "slurm-12"},
      {{{"JOB_COMPLETION_INDEX", "3"}}, "job-3"},
      {{{"JOB_COMPLETION_INDEX", "3"}, {"JOB_NAME", "hpo-a"}}, "hpo-a-3"},
      {{{"SKYPILOT_JOB_RANK", "4"}}, "sky-4"},
      {{{"SKYPILOT_JOB_RANK", "4"},
        {"SKYPILOT_TASK_ID", "sky-managed-2026-11-28-10-00-00-000000_hpo_a_12-0"}},
       "hpo_a-4"},
      {{{"SKYPILOT_JOB_RANK", "4"}, {"SKYPILOT_NUM_NODES", "2"}, {"SKYPILOT_NODE_RANK", "1"}},
       "sky-4.1"},
      {{{"SKYPILOT_JOB_RANK", "4"}, {"SKYPILOT_NUM_NODES", "1"}, {"SKYPILOT_NODE_RANK", "0"}},
       "sky-4"},
      // SkyPilot's jobs may run on Slurm.
      {{{"SLURM_JOB_ID", ""}, {"SKYPILOT_JOB_RANK", "4"}}, "sky-4"},
  };
  for (const auto& [environment, expected] : cases) {
    SCOPED_TRACE(expected);
    EXPECT_EQ(NameIn(environment), expected);
  }
}

TEST(EngineWorkerName, APodOfAnIndexedJobHasTheJobsNameInItsHosts) {
  EXPECT_EQ(NameIn({{"JOB_COMPLETION_INDEX", "3"}}, "hpo-criteria-3"), "hpo-criteria-3");
  EXPECT_EQ(NameIn({{"JOB_COMPLETION_INDEX", "3"}}, "node-13"), "job-3");
}

TEST(EngineWorkerName, DoesNotDependOnTheHostOfASlurmJob) {
  const Environment job = {{"SLURM_JOB_ID", "12"}};
  EXPECT_EQ(NameIn(job, "node1"), NameIn(job, "node2"));
}

}  // namespace
}  // namespace hpo::agent
