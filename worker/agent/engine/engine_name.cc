#include "worker/agent/engine/engine_name.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hpo::agent {
namespace {

// Of a variable that is not set, or empty: "".
std::string Text(const EngineVariables& variables, const char* name) {
  return variables(name).value_or("");
}

bool IsSeveral(const std::string& count) {
  int64_t number = 0;
  return absl::SimpleAtoi(count, &number) && number > 1;
}

std::string SlurmName(const EngineVariables& variables) {
  const std::string array = Text(variables, "SLURM_ARRAY_JOB_ID");
  const std::string task = Text(variables, "SLURM_ARRAY_TASK_ID");
  const std::string job = Text(variables, "SLURM_JOB_ID");
  const std::string id = array.empty() || task.empty() ? job : absl::StrCat(array, "_", task);
  if (id.empty()) return "";
  const std::string rank = Text(variables, "SLURM_PROCID");
  const bool of_several = IsSeveral(Text(variables, "SLURM_STEP_NUM_TASKS"));
  return absl::StrCat("slurm-", id, of_several && !rank.empty() ? "." : "", of_several ? rank : "");
}

// The job controller names the pod's host JOB-INDEX, unless the pod has the network of its node.
std::string KubernetesName(const EngineVariables& variables, const std::string& host) {
  const std::string index = Text(variables, "JOB_COMPLETION_INDEX");
  if (index.empty()) return "";
  const std::string job = Text(variables, "JOB_NAME");
  if (!job.empty()) return absl::StrCat(job, "-", index);
  return absl::EndsWith(host, absl::StrCat("-", index)) ? host : absl::StrCat("job-", index);
}

// Of "sky-managed-2026-11-28-10-00-00-000000_NAME_12-0" NAME: the ranks of two fleets are alike.
std::string SkyTask(const std::string& id) {
  const size_t first = id.find('_');
  const size_t last = id.rfind('_');
  return first == std::string::npos || last <= first + 1 ? "sky"
                                                         : id.substr(first + 1, last - first - 1);
}

std::string SkyPilotName(const EngineVariables& variables) {
  const std::string rank = Text(variables, "SKYPILOT_JOB_RANK");
  if (rank.empty()) return "";
  const std::string node = Text(variables, "SKYPILOT_NODE_RANK");
  const bool of_several = IsSeveral(Text(variables, "SKYPILOT_NUM_NODES")) && !node.empty();
  return absl::StrCat(SkyTask(Text(variables, "SKYPILOT_TASK_ID")), "-", rank,
                      of_several ? "." : "", of_several ? node : "");
}

}  // namespace

std::string EngineWorkerName(const EngineVariables& variables, const std::string& host) {
  for (std::string name :
       {SlurmName(variables), KubernetesName(variables, host), SkyPilotName(variables)}) {
    if (!name.empty()) return name;
  }
  return "";
}

}  // namespace hpo::agent
