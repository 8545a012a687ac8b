#include "cli/fleet/engines/ray_script.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/templates/fleet_templates.h"
#include "cli/fleet/templates/template_text.h"

namespace hpo::cli {
namespace {

constexpr char kSecret[] = R"(
import os
import pathlib

# The file `join` in the folder of this script holds the secret, and only you may read it (chmod 600).
# `hpo fleet ray --submit` puts it there.
os.environ["HPO_JOIN_FILE"] = str(pathlib.Path(__file__).with_name("join")))";

std::string Arguments(const FleetPlan& plan) {
  std::vector<std::string> lines = {absl::StrCat(plan.workers), "name=" + QuotedText(plan.name)};
  if (!plan.study.empty()) lines.push_back("study=" + QuotedText(plan.study));
  if (!plan.server.HasSecret()) lines.push_back("server=" + QuotedText(plan.server.address));
  lines.push_back(absl::StrCat("gpus_per_worker=", plan.gpus_per_worker));
  if (!plan.gpu_type.empty()) lines.push_back("gpu_type=" + QuotedText(plan.gpu_type));
  if (plan.cpus_per_worker > 0) {
    lines.push_back(absl::StrCat("cpus_per_worker=", plan.cpus_per_worker));
  }
  if (plan.memory_per_worker > Bytes{0}) {
    lines.push_back(absl::StrCat("memory_per_worker=", plan.memory_per_worker.count));
  }
  if (!plan.checkpoints.empty()) lines.push_back("checkpoints=" + QuotedText(plan.checkpoints));
  const std::vector<std::string> options = DeviceWords(plan);
  std::vector<std::string> words;
  for (const std::string& word : options) words.push_back(QuotedText(word));
  for (const std::string& word : plan.worker_options) words.push_back(QuotedText(word));
  if (!words.empty()) lines.push_back(absl::StrCat("options=[", absl::StrJoin(words, ", "), "]"));
  return absl::StrJoin(lines, "\n", [](std::string* text, const std::string& line) {
    absl::StrAppend(text, line, ",");
  });
}

}  // namespace

std::string RayScript(const FleetPlan& plan) {
  return FillTemplate(
      kRayTemplate, {{"NAME", plan.name},
                     {"COMMAND", absl::StrReplaceAll(PlanCommand("ray", plan), {{"\n", "\n#   "}})},
                     {"SIZE", WorkersText(static_cast<size_t>(plan.workers))},
                     {"SECRET", plan.server.HasSecret() ? kSecret : ""},
                     {"ARGUMENTS", Arguments(plan)}});
}

}  // namespace hpo::cli
