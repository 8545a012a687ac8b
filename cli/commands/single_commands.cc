// Tested by tests/cli/program/program_test.cc.
#include "cli/commands/single_commands.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "cli/commands/connect_command.h"
#include "cli/commands/doctor_command.h"
#include "cli/commands/open_command.h"
#include "cli/commands/run_command.h"
#include "cli/commands/studies/study_commands.h"
#include "cli/commands/trials/trial_commands.h"
#include "common/base/status.h"
#include "common/command_line/bounds.h"
#include "common/command_line/exit_status.h"

namespace hpo::cli {
namespace {

// Options of hpo-worker.
void AddPassedOn(CLI::App& run, const std::shared_ptr<RunOptions>& options) {
  const std::tuple<std::string, const char*, std::string> passed_on[] = {
      {"--models", "DIR", "Folder that contains a folder for each model"},
      {"--data", "DIR", "Folder of the data files that the study names"},
      {"--trainer", "COMMAND",
       "Command that runs your own training program, such as 'python train.py {args}'"},
      {"--metric-pattern", "REGEX",
       "Regular expression that finds the metric in printed lines, such as 'loss: (\\S+)'"},
      {"--metrics-file", "FILE", "File in which the program writes its metrics"}};
  for (const auto& [name, type, help] : passed_on) {
    run.add_option_function<std::string>(
           name,
           [name = name, options](const std::string& value) {
             options->passed_on.emplace_back(name, value);
           },
           help + " (passed to hpo-worker)")
        ->type_name(type);
  }
  run.add_flag("--preflight", options->preflight,
               "Dry-run each configuration that is not known to fit before a GPU runs it (passed "
               "to hpo-worker)");
}

void AddBudget(CLI::App& run, RunOptions& options) {
  run.add_option("--trials", options.trials,
                 "Number of trials to run [default: the budget in the file]")
      ->type_name("N")
      ->check(AtLeast(1));
  run.add_option("--add", options.add_trials, "Number of trials to add to the budget")
      ->type_name("N")
      ->check(AtLeast(1))
      ->excludes("--trials");
  run.add_option("--target", options.target,
                 "End the study when a trial reaches this value of the objective")
      ->type_name("VALUE");
}

void AddHardware(CLI::App& run, RunOptions& options) {
  run.add_option("--gpu", options.gpu,
                 "GPU to use: its number or UUID, or visible for each that CUDA_VISIBLE_DEVICES "
                 "lists, or for each if it is not set [default: visible; without a GPU the CPU]")
      ->type_name("GPU");
  run.add_option("--device", options.device, "Device to use: cpu, or cuda for the visible GPUs")
      ->check(OneOf({"cpu", "cuda"}));
  run.add_option("--workers", options.num_workers,
                 "Number of trials that run at once on the CPU, with one worker for each")
      ->type_name("N")
      ->check(Between(1, 1024))
      ->capture_default_str();
  run.add_option("--memory-limit", options.memory_limit,
                 "Memory limit of a trial [default: all of the GPU; on a CPU half of the free "
                 "memory, shared by the workers]")
      ->type_name("SIZE");
}

Action DeclareRun(CLI::App& run, std::string& /*study*/) {
  const auto options = std::make_shared<RunOptions>();
  run.add_option("file", options->study, "Study file (YAML), or the name of a preset")
      ->type_name("FILE|NAME")
      ->required()
      ->check(NotEmpty("a study file, or the name of a preset"));
  run.add_option("--name", options->name, "Name of the study [default: the name in the file]")
      ->type_name("NAME");
  run.add_option("--dir", options->folder,
                 "Folder for database, logs and models [default: ~/.local/share/hpo/runs/STUDY]")
      ->type_name("DIR");
  AddBudget(run, *options);
  run.add_flag("--edit", options->edit,
               "Take changed ranges and choices of the file into a study that has trials");
  run.add_flag("--open", options->open, "Open the page of the study in a browser");
  run.add_option("--export", options->export_to, "Copy the best trial's model folder to DIR")
      ->type_name("DIR");
  AddHardware(run, *options);
  AddPassedOn(run, options);
  run.add_option("worker-options", options->worker_arguments,
                 "More options for hpo-worker, after --")
      ->type_name("...");
  return [options](Session& session) { return RunStudy(session, *options); };
}

Action DeclareBest(CLI::App& best, std::string& /*study*/) {
  struct Values {
    std::optional<int> count;
    std::string export_to;
  };
  const auto values = std::make_shared<Values>();
  best.add_option("--n", values->count,
                  "Number of trials to show [default: 1, or the whole Pareto front]")
      ->type_name("N")
      ->check(Between(1, 1000));
  best.add_option("--export", values->export_to, "Copy the best trial's model folder to DIR")
      ->type_name("DIR");
  return Plain(
      [values](Session& session) { return ShowBest(session, values->count, values->export_to); });
}

Action DeclareEnqueue(CLI::App& enqueue, std::string& /*study*/) {
  const auto options = std::make_shared<EnqueueOptions>();
  enqueue
      .add_option("params", options->params, "Values of parameters; the others are drawn at random")
      ->type_name("NAME=VALUE");
  enqueue.add_flag("--demonstration", options->demonstration,
                   "Mark the trial as a demonstration, which does not count as a trial");
  enqueue.add_flag("--no-admission", options->skip_admission,
                   "Run the trial even if its predicted memory does not fit");
  enqueue
      .add_option("--micro-batch", options->micro_batch, "Size of the micro-batch to start with")
      ->type_name("M")
      ->check(AtLeast(1));
  return Plain([options](Session& session) { return Enqueue(session, *options); });
}

Action DeclareWatch(CLI::App& watch, std::string& /*study*/) {
  const auto until_finished = std::make_shared<bool>(false);
  watch.add_flag("--until-finished", *until_finished, "End when the study has finished");
  return [until_finished](Session& session) -> absl::StatusOr<int> {
    HPO_ASSIGN_OR_RETURN(const StudyStatus study, WatchStudy(session, *until_finished));
    if (study.finished && !study.failure.empty()) return kExitStudyFailed;
    return study.counts.completed > 0 || !*until_finished ? kExitOk : kExitNothingCompleted;
  };
}

Action DeclareConnect(CLI::App& connect, std::string& /*study*/) {
  const auto options = std::make_shared<ConnectOptions>();
  connect
      .add_option("--listen", options->listen,
                  "Address of this machine: a loopback address and port (0: any free port), or "
                  "unix:/path/to/socket, which only you can use")
      ->type_name("ADDRESS")
      ->capture_default_str();
  connect
      .add_option("--address-file", options->address_file,
                  "Write the address to this file when it can be used")
      ->type_name("FILE");
  connect
      .add_option("--end-with", options->end_with,
                  "End when this process ends, which must have started the command")
      ->type_name("PID");
  return Plain([options](Session& session) { return Connect(session, *options); });
}

Action DeclareOpen(CLI::App& open, std::string& study) {
  open.add_option("study", study, "Name of the study [default: the only one]")->type_name("STUDY");
  const auto only_print = std::make_shared<bool>(false);
  open.add_flag("--print", *only_print, "Print the address, and start no browser");
  return Plain([only_print](Session& session) { return OpenPage(session, !*only_print); });
}

}  // namespace

Command RunCommand() {
  return {.name = "run",
          .help = "Run a whole study on this machine; starts a server and workers",
          .declare = DeclareRun};
}

Command StatusCommand() {
  return {.name = "status",
          .help = "Show the studies, their progress and their workers",
          .access = Access::kReads,
          .declare = WithoutOptions(Plain(ShowStatus)),
          .examples = "  hpo status --study criteria --output json\n"};
}

Command ConnectCommand() {
  return {
      .name = "connect",
      .help = "Reach a server on another machine by an address of this one, for other tools",
      .declare = DeclareConnect,
      .examples =
          "  hpo connect --join file:join            then, say, optuna-dashboard on port 50051\n"};
}

Command OpenCommand() {
  return {.name = "open",
          .help = "Open the page of a server in a browser, and print its address",
          .declare = DeclareOpen,
          .examples =
              "  hpo open criteria                       open the page of a study\n"
              "  hpo open --print                        print the address alone\n"};
}

Command DoctorCommand() {
  return {.name = "doctor",
          .help = "Check this machine for problems that prevent trials from running",
          .declare = WithoutOptions(RunDoctor),
          .examples =
              "  hpo doctor                              check GPU, driver, torch, disk, "
              "server and versions\n"};
}

Command BestCommand() {
  return {.name = "best",
          .help = "Show the best trial, or the Pareto front of several objectives",
          .access = Access::kReads,
          .declare = DeclareBest,
          .examples =
              "  hpo best --n 5\n"
              "  hpo best -o yaml                        print the parameters, to paste "
              "into a file\n"};
}

Command EnqueueCommand() {
  return {.name = "enqueue",
          .help = "Queue a trial with parameters of your choice",
          .declare = DeclareEnqueue};
}

Command WatchCommand() {
  return {.name = "watch",
          .help = "Follow the progress of a study",
          .declare = DeclareWatch,
          .examples =
              "  hpo watch --until-finished -o json      write one JSON object per line, "
              "for programs\n"};
}

}  // namespace hpo::cli
