#include "cli/memory_program.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "cli/memory_commands.h"
#include "common/command_line/exit_status.h"

namespace hpo {
namespace {

using OnChosen = std::function<void(CLI::App*, Action)>;

Action Verdict(std::function<absl::StatusOr<bool>(Session&)> action) {
  return [action = std::move(action)](Session& session) -> absl::StatusOr<int> {
    const absl::StatusOr<bool> fits = action(session);
    if (!fits.ok()) return fits.status();
    return *fits ? static_cast<int>(kExitOk) : kExitDoesNotFit;
  };
}

CLI::App* Add(CLI::App& group, const std::string& name, const std::string& help,
              const std::string& example) {
  CLI::App* const command = group.add_subcommand(name, help);
  command->fallthrough();
  command->footer("\nExample:\n  " + example + "\n");
  return command;
}

void AddDevice(CLI::App* command, CardOptions& device, bool several) {
  CLI::Option* const card =
      command->add_option("--card", device.cards, "What the card has, such as 24GiB")
          ->required()
          ->allow_extra_args(false)
          ->type_name(several ? "SIZE,..." : "SIZE");
  if (several) card->delimiter(',');
  command->add_option("--device", device.kind, "cuda, or cpu for a budget of live bytes")
      ->check(CLI::IsMember({"cuda", "cpu"}))
      ->capture_default_str();
  command->add_option("--headroom", device.headroom, "Kept free [2 %, at least 256 MiB; cpu: 0]")
      ->type_name("SIZE");
}

void AddEstimate(CLI::App& group, const OnChosen& on_chosen) {
  const auto options = std::make_shared<MemoryOptions>();
  const auto spec = std::make_shared<std::string>();
  CLI::App* const estimate =
      Add(group, "estimate", "Bytes by class, and whether it fits",
          "hpo memory estimate model.name=bert-large-uncased train.batch_size=48 --limit 24GiB");
  CLI::Option* const params =
      estimate->add_option("params", options->params, "Parameters")->type_name("NAME=VALUE");
  estimate
      ->add_option("--spec", *spec,
                   "A step described in a JSON file (-: read it from standard "
                   "input) instead of a study's; needs no server")
      ->type_name("FILE")
      ->excludes(params);
  estimate->add_option("--worker", options->worker, "On which worker [the largest]")
      ->type_name("NAME");
  estimate->add_option("--limit", options->limit, "Within how much memory [the worker's]")
      ->type_name("SIZE");
  on_chosen(estimate, Verdict([options, spec](Session& session) {
              return spec->empty() ? EstimateMemory(session, *options)
                                   : EstimateDescribedStep(session, *spec);
            }));
}

void AddStatus(CLI::App& group, const OnChosen& on_chosen) {
  CLI::App* const status = Add(group, "status", "Memory of this machine's cards and of its host",
                               "hpo memory status --output json");
  on_chosen(status, [](Session& session) -> absl::StatusOr<int> {
    if (absl::Status shown = ShowMemoryStatus(session); !shown.ok()) return shown;
    return kExitOk;
  });
}

void AddFit(CLI::App& group, const OnChosen& on_chosen) {
  const auto options = std::make_shared<MemoryFitOptions>();
  options->lengths = {128, 256, 384, 512};
  CLI::App* const fit =
      Add(group, "fit", "The largest micro-batch for each length and card; needs no server",
          "hpo memory fit --model bert-large-uncased --card 8GiB,16GiB,24GiB,80GiB");
  fit->add_option("--model", options->model, "A name of the catalogue, or a config.json")
      ->required()
      ->type_name("NAME");
  fit->add_option("--lengths", options->lengths, "Tokens of a row")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  fit->add_option("--grad-accum", options->grad_accum, "Parts of an effective batch")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  AddDevice(fit, options->device, /*several=*/true);
  on_chosen(fit, Verdict([options](Session& session) { return ShowMemoryFit(session, *options); }));
}

void AddSpace(CLI::App& group, const OnChosen& on_chosen) {
  const auto options = std::make_shared<MemorySpaceOptions>();
  CLI::App* const space =
      Add(group, "space", "How much of a study's space fits each card, and what to cut",
          "hpo memory space criteria --card 8GiB,16GiB,24GiB");
  space
      ->add_option("file", options->file,
                   "A study file or the name of a preset; needs no server [--study of the server]")
      ->type_name("STUDY.yaml");
  AddDevice(space, options->device, /*several=*/true);
  on_chosen(space,
            Verdict([options](Session& session) { return ShowMemorySpace(session, *options); }));
}

void AddPlan(CLI::App& group, const OnChosen& on_chosen) {
  const auto options = std::make_shared<MemoryPlanOptions>();
  CLI::App* const plan =
      Add(group, "plan", "The cheapest changes that make a configuration fit; needs no server",
          "hpo memory plan model.name=bert-large-uncased train.batch_size=48 tok.max_length=480 "
          "--card 24GiB");
  plan->add_option("params", options->params, "Parameters")->type_name("NAME=VALUE")->required();
  AddDevice(plan, options->device, /*several=*/false);
  on_chosen(plan,
            Verdict([options](Session& session) { return ShowMemoryPlan(session, *options); }));
}

}  // namespace

void AddMemoryCommands(CLI::App& group, const OnChosen& on_chosen) {
  AddEstimate(group, on_chosen);
  AddFit(group, on_chosen);
  AddSpace(group, on_chosen);
  AddPlan(group, on_chosen);
  AddStatus(group, on_chosen);
}

}  // namespace hpo
