#include "cli/fleet/engines/slurm_script.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/engines/fleet_files.h"
#include "cli/fleet/templates/fleet_templates.h"
#include "cli/fleet/templates/template_text.h"
#include "common/base/status.h"
#include "common/command_line/shell_word.h"

namespace hpo::cli {
namespace {

constexpr int64_t kSignalSeconds = 180;

std::string Options(const FleetPlan& plan) {
  std::vector<std::string> lines;
  const auto add = [&lines](const auto&... parts) {
    lines.push_back(absl::StrCat("#SBATCH ", parts...));
  };
  if (plan.gpus_per_worker > 0) {
    const std::string type = plan.gpu_type.empty() ? "" : plan.gpu_type + ":";
    add("--gres=gpu:", type, plan.gpus_per_worker);
  }
  if (plan.cpus_per_worker > 0) add("--cpus-per-task=", plan.cpus_per_worker);
  if (plan.memory_per_worker > Bytes{0}) add("--mem=", plan.memory_per_worker.count >> 20, "M");
  if (plan.time) add("--time=", ClockText(*plan.time));
  for (const std::string& option : plan.engine_options) add(option);
  return absl::StrJoin(lines, "\n");
}

std::string Server(const FleetPlan& plan) {
  if (plan.server.HasSecret()) {
    return absl::StrCat(
        "# This file says how to reach the server, and holds the secret. It is on a file system "
        "that\n"
        "# all nodes share, and only you may read it (chmod 600).\n",
        "export HPO_JOIN_FILE=", ShellWord(JoinFileOf(plan)));
  }
  const std::string warning = IsLoopback(plan.server.address)
                                  ? "# This address is of the machine that submits the fleet: "
                                    "other nodes reach no server there.\n"
                                  : "";
  return absl::StrCat(warning, "export HPO_SERVER=", ShellWord(plan.server.address));
}

std::string Setup(const FleetPlan& plan) {
  std::vector<std::string> lines = plan.setup;
  // srun of Slurm 22.05 and later does not take it from sbatch.
  if (plan.cpus_per_worker > 0) lines.push_back("export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK");
  return absl::StrJoin(lines, "\n");
}

bool IsListOfWords(absl::string_view text) {
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (!IsWord(word, "-_.+")) return false;
  }
  return true;
}

}  // namespace

absl::Status CheckSlurmWords(const FleetPlan& plan) {
  if (!plan.gpu_type.empty() && !IsWord(plan.gpu_type, "-_.")) {
    return Unexpected("--gpu-type", "a type of GRES, such as a100",
                      absl::StrCat("'", plan.gpu_type, "'"));
  }
  for (absl::string_view option : plan.engine_options) {
    if (!absl::StartsWith(option, "-")) {
      return Unexpected("--option", "an option of sbatch, such as --option=--account=vision",
                        absl::StrCat("'", option, "'"));
    }
    if (absl::ConsumePrefix(&option, "--partition=") && !IsListOfWords(option)) {
      return Unexpected("--partition", "the name of a partition, or several with ',' between them",
                        absl::StrCat("'", option, "'"));
    }
  }
  return absl::OkStatus();
}

int SignalSeconds(const FleetPlan& plan) {
  if (!plan.time) return kSignalSeconds;
  return static_cast<int>(std::min(kSignalSeconds, absl::ToInt64Seconds(*plan.time) / 4));
}

std::string SlurmScript(const FleetPlan& plan, const std::string& program) {
  const std::string throttle = plan.max_running > 0 ? absl::StrCat("%", plan.max_running) : "";
  const std::string label = FleetLabel(plan.name);
  return FillTemplate(
      kSlurmTemplate,
      {{"NAME", plan.name},
       {"LABEL", label},
       {"COMMAND", absl::StrReplaceAll(PlanCommand("slurm", plan), {{"\n", "\n#   "}})},
       {"SIZE", WorkersText(static_cast<size_t>(plan.workers))},
       {"ARRAY", absl::StrCat("0-", plan.workers - 1, throttle)},
       {"OPTIONS", Options(plan)},
       {"LOG", absl::StrCat(label, "-%A_%a.log")},
       {"SIGNAL_S", absl::StrCat(SignalSeconds(plan))},
       {"SERVER", Server(plan)},
       {"SETUP", Setup(plan)},
       {"WORKER", WordLines(WorkerWords(plan, program))}});
}

}  // namespace hpo::cli
