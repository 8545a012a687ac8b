#include "cli/fleet/fleet_group.h"

#include <poll.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "cli/client/interrupts.h"
#include "cli/client/terminal.h"
#include "cli/fleet/all_engines.h"
#include "cli/fleet/fleet_commands.h"
#include "common/base/status.h"
#include "common/command_line/bounds.h"

namespace hpo::cli {
namespace {

constexpr char kExamples[] = R"(
  hpo fleet slurm --workers 32 --time 8h --study criteria > fleet.sbatch
  hpo fleet slurm --workers 32 --max-running 16 --study criteria --submit
  hpo fleet slurm --workers 8 --setup "module load cuda" -- --models ~/models
  hpo fleet slurm --workers 64 --gpus-per-worker 0 --memory 16GiB --submit
  hpo fleet ray --workers 32 --study criteria --submit
  hpo fleet kubernetes --workers 32 --image registry/hpo --study toy --submit
  hpo fleet sky --workers 8 --gpu-type A100 --spot --study criteria --submit
  hpo fleet status                        list the fleets
  hpo fleet status criteria -o json       show the workers of a fleet, for programs
  hpo fleet scale criteria --workers 8
  hpo fleet stop criteria                 end all workers; their trials are requeued
)";

// Ends with a signal of the user's.
bool Pause(absl::Duration time) {
  pollfd interrupts{.fd = InterruptEvents(), .events = POLLIN, .revents = 0};
  const int ready = poll(&interrupts, 1, static_cast<int>(absl::ToInt64Milliseconds(time)));
  return ready == 0 || (ready < 0 && errno == EINTR && InterruptsSeen() == 0);
}

void Notify(const std::string& text) { std::cerr << "hpo: " << Printable(text) << "\n"; }

EngineMeans Means() {
  return {.run = [](const ProgramCall& call) { return RunEngineProgram(call, Notify); },
          .pause = Pause,
          .notify = Notify};
}

void AddSize(CLI::App& command, FleetOptions& options) {
  FleetPlan& plan = options.plan;
  command.add_option("--workers", plan.workers, "Number of workers")
      ->type_name("N")
      ->required()
      ->check(Between(1, 100000));
  command
      .add_option("--gpus-per-worker", plan.gpus_per_worker,
                  "Number of GPUs for each worker; 0: none, the workers run trials on CPUs")
      ->type_name("N")
      ->check(Between(0, 1024))
      ->capture_default_str();
  command.add_option("--gpu-type", plan.gpu_type, "Type of the GPUs, by the engine's name for it")
      ->type_name("TYPE")
      ->check(NotEmpty("a type of GPU"));
  command.add_option("--cpus", plan.cpus_per_worker, "Number of CPUs for each worker")
      ->type_name("N")
      ->check(Between(1, 4096));
  command
      .add_option("--memory", options.memory,
                  "Host memory for each worker, such as 32GiB; required without GPUs")
      ->type_name("SIZE");
}

void AddWork(CLI::App& command, FleetOptions& options) {
  FleetPlan& plan = options.plan;
  command
      .add_option("--name", plan.name,
                  "Name of the fleet [default: the name given by --study, else workers]")
      ->type_name("NAME")
      ->check(NotEmpty("the name of a fleet"));
  command
      .add_option("--checkpoints", plan.checkpoints,
                  "Folder for checkpoints that all workers share (passed to hpo-worker)")
      ->type_name("DIR");
  command.add_flag("--submit", options.submit,
                   "Have the engine start the fleet, in place of printing the script");
  command
      .add_option("worker-options", plan.worker_options, "More options for hpo-worker, after --")
      ->type_name("...");
}

void AddSetup(CLI::App& command, FleetOptions& options) {
  command
      .add_option("--setup", options.plan.setup,
                  "Line of shell to run before the worker, such as 'module load cuda' (repeatable)")
      ->type_name("LINE")
      ->allow_extra_args(false);
}

// For an engine without a time limit: says so, where the option's nearest name would be no advice.
void AddNoTime(CLI::App& command, const char* why) {
  command.add_option_function<std::string>("--time", [](const std::string& /*time*/) {})
      ->group("")
      ->check(CLI::Validator([why](const std::string& /*time*/) { return std::string(why); },
                             /*validator_desc=*/""));
}

Action Starting(const std::string& engine, std::shared_ptr<FleetOptions> options) {
  return Plain([engine, options = std::move(options)](Session& session) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const std::unique_ptr<FleetEngine> made, MakeEngine(engine, Means()));
    return StartFleet(session, *made, *options, Notify);
  });
}

Action DeclareSlurm(CLI::App& slurm, std::string& /*study*/) {
  const auto options = std::make_shared<FleetOptions>();
  AddSize(slurm, *options);
  slurm
      .add_option("--time", options->time,
                  "Time limit of a worker, such as 8h; work that is left then is requeued")
      ->type_name("DURATION");
  slurm
      .add_option("--max-running", options->plan.max_running,
                  "Number of workers that run at a time [default: all]")
      ->type_name("N")
      ->check(Between(1, 100000));
  slurm.add_option("--partition", options->partition, "Partition of Slurm's")
      ->type_name("NAME")
      ->check(NotEmpty("the name of a partition"));
  slurm
      .add_option("--option", options->plan.engine_options,
                  "Option for sbatch, such as --option=--account=vision (repeatable)")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  AddWork(slurm, *options);
  AddSetup(slurm, *options);
  return Starting("slurm", options);
}

Action DeclareRay(CLI::App& ray, std::string& /*study*/) {
  const auto options = std::make_shared<FleetOptions>();
  AddSize(ray, *options);
  AddWork(ray, *options);
  AddNoTime(ray,
            "Ray has no time limit: end the fleet with hpo fleet stop NAME, or give workers "
            "one: -- --time-limit 8h");
  return Starting("ray", options);
}

Action DeclareKubernetes(CLI::App& kubernetes, std::string& /*study*/) {
  const auto options = std::make_shared<FleetOptions>();
  AddSize(kubernetes, *options);
  kubernetes.add_option("--image", options->plan.image, "Image of containers, with hpo-worker")
      ->type_name("IMAGE")
      ->required()
      ->check(NotEmpty("the name of an image"));
  kubernetes.add_option("--queue", options->plan.queue, "Queue of Kueue, which admits the fleet")
      ->type_name("NAME")
      ->check(NotEmpty("the name of a queue"));
  kubernetes
      .add_option("--claim", options->plan.claim,
                  "Persistent volume claim, which workers have at /shared")
      ->type_name("NAME")
      ->check(NotEmpty("the name of a claim"));
  kubernetes
      .add_option("--time", options->time,
                  "Time after which Kubernetes ends the fleet, such as 8h; trials are requeued")
      ->type_name("DURATION");
  AddWork(kubernetes, *options);
  AddSetup(kubernetes, *options);
  return Starting("kubernetes", options);
}

Action DeclareSky(CLI::App& sky, std::string& /*study*/) {
  const auto options = std::make_shared<FleetOptions>();
  AddSize(sky, *options);
  AddNoTime(sky,
            "SkyPilot has no time limit: end the fleet with hpo fleet stop NAME, or give "
            "workers one: -- --time-limit 8h");
  sky.add_flag("--spot", options->plan.is_spot,
               "Use spot machines: a preempted worker continues on another one");
  AddWork(sky, *options);
  AddSetup(sky, *options);
  return Starting("sky", options);
}

// What the commands on a fleet that runs have in common.
struct OnFleet {
  std::string name;
  std::string engine;
};

void AddFleet(CLI::App& command, OnFleet& fleet, bool is_required) {
  command.add_option("name", fleet.name, "Name of the fleet")
      ->type_name("NAME")
      ->required(is_required)
      ->check(NotEmpty("the name of a fleet"));
  command
      .add_option("--engine", fleet.engine,
                  "Engine of the fleet [default: the one that has a fleet of this name]")
      ->check(OneOf(EngineNames()));
}

using FleetAction = std::function<absl::Status(Session&, FleetEngine&)>;

Action WithEngine(std::shared_ptr<const OnFleet> fleet, FleetAction action) {
  return Plain(
      [fleet = std::move(fleet), action = std::move(action)](Session& session) -> absl::Status {
        HPO_ASSIGN_OR_RETURN(const std::unique_ptr<FleetEngine> engine,
                             fleet->engine.empty() ? FindEngine(Means(), fleet->name)
                                                   : MakeEngine(fleet->engine, Means()));
        return action(session, *engine);
      });
}

Action DeclareStatus(CLI::App& status, std::string& /*study*/) {
  const auto fleet = std::make_shared<OnFleet>();
  AddFleet(status, *fleet, /*is_required=*/false);
  return WithEngine(fleet, [fleet](Session& session, FleetEngine& engine) {
    return ShowFleet(session, engine, fleet->name);
  });
}

CLI::Validator NotNone() {
  const auto check = [](const std::string& text) -> std::string {
    return text == "0" ? "expected at least 1, got 0; to end the fleet: hpo fleet stop NAME" : "";
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

Action DeclareScale(CLI::App& scale, std::string& /*study*/) {
  const auto fleet = std::make_shared<OnFleet>();
  const auto workers = std::make_shared<int>(0);
  AddFleet(scale, *fleet, /*is_required=*/true);
  scale.add_option("--workers", *workers, "Number of workers that wait or run from now on")
      ->type_name("N")
      ->required()
      ->check(NotNone())
      ->check(Between(1, 100000));
  return WithEngine(fleet, [fleet, workers](Session& session, FleetEngine& engine) {
    return ScaleFleet(session, engine, fleet->name, *workers);
  });
}

Action DeclareStop(CLI::App& stop, std::string& /*study*/) {
  const auto fleet = std::make_shared<OnFleet>();
  const auto patience = std::make_shared<std::string>("5m");
  AddFleet(stop, *fleet, /*is_required=*/true);
  stop.add_option("--wait", *patience, "Longest time to wait for the workers' end")
      ->type_name("DURATION")
      ->capture_default_str();
  return WithEngine(fleet, [fleet, patience](Session& session, FleetEngine& engine) {
    HPO_RETURN_IF_ERROR(CountInterrupts());
    return StopFleet(session, engine, fleet->name, *patience);
  });
}

}  // namespace

Command FleetGroup() {
  using enum Access;
  return {.name = "fleet",
          .help = "Start and end workers on a cluster as one thing",
          .examples = kExamples,
          .commands = {
              {"slurm", "Print the batch script of a fleet on Slurm, or submit it", kChanges,
               DeclareSlurm, Output::kVerbatim},
              {"ray", "Print the Python script of a fleet on Ray, or submit it", kChanges,
               DeclareRay, Output::kVerbatim},
              {"kubernetes", "Print the manifest of a fleet on Kubernetes, or submit it", kChanges,
               DeclareKubernetes, Output::kVerbatim},
              {"sky", "Print the task of a fleet on SkyPilot, or launch its managed jobs", kChanges,
               DeclareSky, Output::kVerbatim},
              {"status", "Show the fleets, or the workers of one", kChanges, DeclareStatus},
              {"scale", "Change the number of workers of a fleet", kChanges, DeclareScale},
              {"stop", "End all workers of a fleet, and wait for their end", kChanges, DeclareStop},
          }};
}

}  // namespace hpo::cli
