#include "cli/fleet/engines/sky_task.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/templates/fleet_templates.h"
#include "cli/fleet/templates/template_text.h"
#include "common/command_line/shell_word.h"

namespace hpo::cli {
namespace {

std::string SkyResources(const FleetPlan& plan) {
  std::vector<std::string> lines;
  if (plan.gpus_per_worker > 0) {
    lines.push_back(absl::StrCat("accelerators: {", QuotedText(plan.gpu_type), ": ",
                                 plan.gpus_per_worker, "}"));
  }
  if (plan.cpus_per_worker > 0) lines.push_back(absl::StrCat("cpus: ", plan.cpus_per_worker, "+"));
  if (plan.memory_per_worker > Bytes{0}) {
    const int64_t gibibytes = (plan.memory_per_worker.count + (int64_t{1} << 30) - 1) >> 30;
    lines.push_back(absl::StrCat("memory: ", gibibytes, "+"));
  }
  return absl::StrJoin(lines, "\n");
}

std::string SkySetup(const FleetPlan& plan) {
  if (plan.setup.empty()) return "";
  const std::string lines = absl::StrJoin(plan.setup, "\n");
  return absl::StrCat("setup: |\n  ", absl::StrReplaceAll(lines, {{"\n", "\n  "}}));
}

// One command over several lines.
std::string SkyWorker(const FleetPlan& plan) {
  const std::string lines = WordLines(WorkerWords(plan, "hpo-worker"));
  return absl::StrReplaceAll(absl::StripPrefix(lines, "  "), {{"\n", " \\\n"}});
}

}  // namespace

std::string SkyTask(const FleetPlan& plan) {
  const bool has_secret = plan.server.HasSecret();
  return FillTemplate(
      kSkyTemplate,
      {{"NAME", plan.name},
       {"LABEL", FleetLabel(plan.name)},
       {"COMMAND", absl::StrReplaceAll(PlanCommand("sky", plan), {{"\n", "\n#   "}})},
       {"SIZE", WorkersText(static_cast<size_t>(plan.workers))},
       {"RESOURCES", SkyResources(plan)},
       {"SPOT", plan.is_spot ? "true" : "false"},
       {"SERVER", has_secret ? "" : "HPO_SERVER: " + QuotedText(plan.server.address)},
       {"SECRET_OPTION",
        has_secret ? absl::StrCat("--secret-file ", ShellWord(plan.folder + "/secrets.env"), " ")
                   : ""},
       {"SECRETS", has_secret
                       ? "# From the file of --secret-file, which --submit writes for you alone "
                         "(mode 0600): the line\n# HPO_JOIN='...' with the join string.\n"
                         "secrets:\n  HPO_JOIN: null"
                       : ""},
       {"SETUP", SkySetup(plan)},
       {"WORKER", SkyWorker(plan)}});
}

}  // namespace hpo::cli
