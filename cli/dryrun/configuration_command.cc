// Tested by tests/cli/dryrun/study_dry_run_test.cc.
#include "cli/dryrun/configuration_command.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/command_line/shell_word.h"
#include "common/files/write_file.h"
#include "common/protocol/trainer_protocol.h"
#include "common/space/placeholders.h"
#include "worker/command/param_text.h"
#include "worker/command/program_files.h"

namespace hpo::cli {
namespace {

constexpr const char* kConfigPlaces[] = {"config", "config:yaml", "config:json"};

}  // namespace

ConfigurationCommand::ConfigurationCommand(const StudySpec& study, std::string text,
                                           std::string workdir)
    : study_(&study), text_(std::move(text)), workdir_(std::move(workdir)), template_(text_) {}

absl::StatusOr<ConfigurationCommand> ConfigurationCommand::Create(
    const StudySpec& study, const std::vector<std::string>& words) {
  const std::vector<std::string>& chosen = words.empty() ? study.trainer.command : words;
  if (chosen.empty()) {
    return absl::InvalidArgumentError(
        "expected a command after --, such as -- python3 train.py --batch {batch}, or a study file "
        "with trainer.command, got none");
  }
  std::vector<std::string> names;
  for (const Parameter& parameter : study.space.parameters) names.push_back(parameter.name);
  for (const auto& [name, value] : study.trainer.defaults) names.push_back(name);
  const std::string text = command::ShellCommand(chosen);
  HPO_RETURN_IF_ERROR(CheckPlaceholders(text, names));
  ConfigurationCommand made(study, text, words.empty() ? study.trainer.workdir : "");
  HPO_RETURN_IF_ERROR(made.template_.CheckForShell());
  return made;
}

std::vector<std::string> ConfigurationCommand::Seen(const std::vector<std::string>& names) const {
  const bool sees_all = template_.Has(kAllParameters) || template_.Has(kAllOverrides) ||
                        !template_.HasPlaces() || command::ReadsParamVariables(text_) ||
                        std::any_of(std::begin(kConfigPlaces), std::end(kConfigPlaces),
                                    [this](const char* place) { return template_.Has(place); });
  if (sees_all) return names;
  std::vector<std::string> seen;
  for (const std::string& name : names) {
    if (template_.Has(name) || template_.Has(absl::StrCat(kFlagPrefix, name))) seen.push_back(name);
  }
  return seen;
}

bool ConfigurationCommand::IsTheSameForAll() const {
  return !template_.HasPlaces() && !command::ReadsParamVariables(text_);
}

absl::StatusOr<ConfigurationRun> ConfigurationCommand::For(const ParamMap& params,
                                                           const std::string& folder) const {
  TrainerJob job{.study = study_->name,
                 .trial = {},
                 .attempt = {},
                 .task = {.params = study_->trainer.defaults, .trainer = study_->trainer},
                 .device = "cuda:0",
                 .output_dir = folder};
  for (const auto& [name, value] : params) job.task.params[name] = value;
  job.checkpoints.folder = folder;
  job.model_name = FindString(params, kModelNameParameter).value_or("");
  const std::map<std::string, std::string> values = command::JobValues(job, MemoryPlan{});
  HPO_ASSIGN_OR_RETURN(std::string text,
                       template_.Fill(job.task.params, values, /*for_shell=*/true));
  for (const char* const place : kConfigPlaces) {
    if (!template_.Has(place) || params.contains(place)) continue;
    HPO_RETURN_IF_ERROR(
        WriteFileAtomically(values.at(place), command::ConfigText(job.task.params)));
  }
  if (!workdir_.empty()) text = absl::StrCat("cd ", ShellWord(workdir_), " || exit\n", text);
  ConfigurationRun run{.command = {"/bin/sh", "-c", std::move(text)},
                       .environment = command::ParamVariables(job.task.params)};
  run.environment.emplace("HPO_OUTPUT_DIR", folder);
  return run;
}

}  // namespace hpo::cli
