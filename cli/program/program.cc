#include "cli/program/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "cli/client/database_snapshot.h"
#include "cli/client/last_run.h"
#include "cli/client/session.h"
#include "cli/commands/doctor_command.h"
#include "cli/commands/exchange/export_commands.h"
#include "cli/commands/exchange/import_command.h"
#include "cli/commands/importance_command.h"
#include "cli/commands/run_command.h"
#include "cli/commands/studies/admin_commands.h"
#include "cli/commands/studies/study_commands.h"
#include "cli/commands/studies/study_presets_command.h"
#include "cli/commands/trials/trial_commands.h"
#include "cli/commands/trials/trial_log_command.h"
#include "cli/memory/memory_program.h"
#include "cli/program/change_program.h"
#include "cli/program/completion.h"
#include "cli/render/wrapped_output.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/command_line/bounds.h"
#include "common/command_line/command_line.h"
#include "common/command_line/exit_status.h"
#include "common/command_line/server_address.h"
#include "common/command_line/shell_word.h"

namespace hpo {
namespace {

constexpr char kExamples[] = R"(
Examples:
  hpo run study.yaml --trainer "python train.py --lr {train.lr}"   run a study on this machine
  hpo status                              show progress, the best trial and waiting workers
  hpo watch --until-finished              follow a study until it has finished
  hpo trial list --state pruned           list the trials that were pruned
  hpo trial show 12                       show parameters, result, attempts and memory
  hpo best --export ./model               copy the best model, for Hugging Face's transformers
  hpo enqueue train.lr=3e-5 train.batch_size=16   run your own configuration next
  hpo memory estimate model.name=bert-large-uncased train.batch_size=64
  hpo memory fit --model bert-large-uncased --card 8GiB,16GiB,24GiB
  hpo study presets memory-safe > my.yaml   write a study file to start from
  hpo study extend criteria --add 50      add 50 trials to the budget
  hpo study pause criteria                start no more trials until hpo study resume
  hpo trial stop 12                       end a running trial
  hpo trial preempt 12                    free a trial's GPU; the trial continues later
  hpo export mlflow --to http://localhost:5000
  hpo import optuna study.db              import the trials of an Optuna study
  hpo admin backup hpo-backup.db          copy the server's database while it runs
  hpo --db ~/.local/state/hpo/hpo.db status   read a database without a server
  hpo completion bash                     print a script that completes commands in a shell

--server or HPO_SERVER gives the address of hpo-server. The default port is 50051.
--study or HPO_STUDY names a study. It is not needed if the server has only one study.

Exit status:
  0  The command succeeded.
  1  The command failed.
  2  The command line, a study file or a parameter is wrong.
  3  Something was not found, or does not fit in memory.
  4  The command conflicts with the state of the study or of the database.
  5  The server does not answer.
  6  The study has finished without a completed trial.
  7  Too many failed trials have ended the study.
  8  "hpo run" has ended because no trial can run. Its last lines say what to change.
)";

// Further examples for the commands' own --help.
constexpr char kMoreExamples[] = R"(
  hpo status --study criteria --output json
  hpo doctor                              check GPU, driver, torch, disk, server and versions
  hpo trial logs 12                       run it on the machine of the trial's worker
  hpo watch --until-finished -o json      write one JSON object per line, for programs
  source <(hpo completion bash)           complete commands in this bash
  hpo completion zsh > _hpo               write a script for a folder of $fpath
  hpo completion fish > hpo.fish          write a script for ~/.config/fish/completions
  hpo study list
  hpo study show criteria
  hpo study presets                       list the study files that come with hpo
  hpo study importance criteria --method fanova
  hpo study extend criteria --wall-clock 8h
  hpo study stop criteria --now
  hpo study resume criteria
  hpo study validate my.yaml              list all errors of a study file
  hpo study create my.yaml --name second   create another study from the same file
  hpo study annotate criteria --note "baseline of May" --tag paper
  hpo study list --tag paper
  hpo study edit criteria --set train.lr=1e-5..1e-3 --set train.batch_size=8,16
  hpo study delete criteria               write criteria.hpo-study, then delete the study
  hpo study restore criteria.hpo-study --name again
  hpo study extend criteria --target 0.9   end the study when a trial reaches 0.9
  hpo trial annotate 12 --tag good --set reviewed=true
  hpo trial list --tag good
  hpo trial retry 12 15
  hpo trial retry --failed
  hpo trial list --sort train.lr --where state=completed --where 'train.lr>1e-5'
  hpo trial cancel 12                     remove a queued trial
  hpo best --n 5
  hpo best -o yaml                        print the parameters, to paste into a file
  hpo export tensorboard --to ./runs
  hpo export optuna study.db
  hpo admin restore hpo-backup.db         stop the server before you run this
)";

// Those lines of the examples that begin with `command`, such as "hpo trial list".
std::string ExamplesOf(const std::string& command) {
  std::string text;
  const std::string all = absl::StrCat(kExamples, kMoreExamples);
  for (const absl::string_view line : absl::StrSplit(all, '\n')) {
    const absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
    const bool is_own = words == command || absl::StartsWith(words, absl::StrCat(command, " "));
    if (is_own) absl::StrAppend(&text, line, "\n");
  }
  return text.empty() ? "" : absl::StrCat("\nExamples:\n", text);
}

struct GlobalOptions {
  std::string server = "127.0.0.1:50051";
  std::string study;
  std::string database;  // read without a server; empty: ask one
  std::string output = "table";
  std::string color = "auto";
};

// The command that was chosen.
struct Chosen {
  Action action;
  std::string words;         // "study list"
  bool reads_alone = false;  // changes nothing, and follows nothing
};

// The commands of one program run, and the one that was chosen. CLI11 keeps references to the
// values, so they live on the heap as long as the actions do.
class Commands {
 public:
  Commands(CLI::App& app, GlobalOptions& global) : app_(app), global_(global) {
    app_.require_subcommand(1);
    app_.fallthrough();
    AddRun();
    AddStatus();
    On(Add(&app_, "doctor", "Check this machine for problems that prevent trials from running"),
       RunDoctor);
    AddStudy();
    AddTrial();
    AddBest();
    AddEnqueue();
    AddWatch();
    AddExport();
    AddImport();
    AddAdmin();
    AddCompletion();
    AddMemoryCommands(
        *AddGroup("memory", "Predict the memory of configurations, and what fits on a GPU"),
        [this](CLI::App* command, Action action) { OnReading(command, std::move(action)); });
  }

  const Chosen& chosen() const { return chosen_; }

 private:
  CLI::App* Add(CLI::App* parent, const std::string& name, const std::string& help) {
    CLI::App* command = parent->add_subcommand(name, help);
    command->fallthrough();
    std::string words = name;
    for (const CLI::App* above = parent; above != nullptr; above = above->get_parent()) {
      words = absl::StrCat(above->get_name(), " ", words);
    }
    command->footer(ExamplesOf(words));
    return command;
  }

  CLI::App* AddGroup(const std::string& name, const std::string& help) {
    CLI::App* group = Add(&app_, name, help);
    group->require_subcommand(1);
    return group;
  }

  // What a command does that changes something, follows a study, or needs no study at all.
  void On(CLI::App* command, Action action) { Declare(command, std::move(action), false); }
  // What a command does that only reads studies as they are, so that a database file will do.
  void OnReading(CLI::App* command, Action action) { Declare(command, std::move(action), true); }

  void Declare(CLI::App* command, Action action, bool reads_alone) {
    std::string words = command->get_name();
    for (const CLI::App* above = command->get_parent(); above->get_parent() != nullptr;
         above = above->get_parent()) {
      words = absl::StrCat(above->get_name(), " ", words);
    }
    command->callback(
        [this, chosen = Chosen{std::move(action), words, reads_alone}] { chosen_ = chosen; });
  }

  void AddRun() {
    const auto options = std::make_shared<RunOptions>();
    CLI::App* run =
        Add(&app_, "run", "Run a whole study on this machine; starts a server and workers");
    run->add_option("file", options->study, "Study file (YAML), or the name of a preset")
        ->type_name("FILE|NAME")
        ->required()
        ->check(NotEmpty("a study file, or the name of a preset"));
    run->add_option("--name", options->name, "Name of the study [default: the name in the file]")
        ->type_name("NAME");
    run->add_option("--dir", options->folder,
                    "Folder for database, logs and models [default: ~/.local/share/hpo/runs/STUDY]")
        ->type_name("DIR");
    run->add_option("--trials", options->trials,
                    "Number of trials to run [default: the budget in the file]")
        ->type_name("N")
        ->check(AtLeast(1));
    run->add_option("--add", options->add_trials, "Number of trials to add to the budget")
        ->type_name("N")
        ->check(AtLeast(1))
        ->excludes("--trials");
    run->add_option("--target", options->target,
                    "End the study when a trial reaches this value of the objective")
        ->type_name("VALUE");
    run->add_flag("--edit", options->edit,
                  "Take changed ranges and choices of the file into a study that has trials");
    run->add_option("--export", options->export_to, "Copy the best trial's model folder to DIR")
        ->type_name("DIR");
    run->add_option("--gpu", options->gpu,
                    "GPU to use: its number, its UUID or all [default: all; without a GPU the CPU]")
        ->type_name("CARD");
    run->add_option("--device", options->device, "Device to use: cpu, or cuda for GPU 0")
        ->check(OneOf({"cpu", "cuda"}));
    run->add_option("--workers", options->num_workers,
                    "Number of trials that run at once on the CPU, with one worker for each")
        ->type_name("N")
        ->check(Between(1, 1024))
        ->capture_default_str();
    run->add_option("--memory-limit", options->memory_limit,
                    "Memory limit of a trial [default: all of the GPU; on a CPU half of the free "
                    "memory, shared by the workers]")
        ->type_name("SIZE");
    const std::tuple<const char*, const char*, const char*> passed_on[] = {
        {"--models", "DIR", "Folder that contains a folder for each model"},
        {"--data", "DIR", "Folder of the data files that the study names"},
        {"--trainer", "COMMAND",
         "Command that runs your own training program, such as 'python train.py {args}'"},
        {"--metric-pattern", "REGEX",
         "Regular expression that finds the metric in printed lines, such as 'loss: (\\S+)'"},
        {"--metrics-file", "FILE", "File in which the program writes its metrics"}};
    for (const auto& [name, type, help] : passed_on) PassOn(run, name, type, help, options);
    run->add_option("worker-options", options->worker_arguments,
                    "More options for hpo-worker, after --")
        ->type_name("...");
    On(run, [options](Session& session) { return RunStudy(session, *options); });
  }

  // An option of hpo-worker.
  static void PassOn(CLI::App* run, const std::string& name, const char* type,
                     const std::string& help, const std::shared_ptr<RunOptions>& options) {
    run->add_option_function<std::string>(
           name,
           [name, options](const std::string& value) {
             options->passed_on.emplace_back(name, value);
           },
           help + " (passed to hpo-worker)")
        ->type_name(type);
  }

  void AddStatus() {
    OnReading(Add(&app_, "status", "Show the studies, their progress and their workers"),
              Plain(ShowStatus));
  }

  void AddStudy() {
    CLI::App* group = AddGroup("study", "Create, list, show and change studies");
    const auto tags = std::make_shared<std::vector<std::string>>();
    CLI::App* list = Add(group, "list", "List the studies, one per line");
    AddTagFilter(list, *tags);
    OnReading(list, Plain([tags](Session& session) { return ListStudies(session, *tags); }));
    AddChanges(group, AddStudyChanges);

    CLI::App* show = Add(group, "show", "Show a study and its search space");
    AddNameArgument(show, global_.study);
    OnReading(show, Plain(ShowStudy));

    const auto preset = std::make_shared<std::string>();
    CLI::App* presets =
        Add(group, "presets", "List or print the study files that come with hpo (needs no server)");
    presets->add_option("name", *preset, "Print the study file with this name")
        ->type_name("PRESET");
    OnReading(presets, Plain([preset](Session& session) { return ShowPresets(session, *preset); }));

    AddImportance(group);
    AddExtend(group);
    AddOrders(group);
    AddFileCommand(group, "validate", "Check a study file and list its errors (needs no server)",
                   true);
    AddFileCommand(group, "create", "Create a study on the server from a study file", false);
  }

  void AddChanges(CLI::App* group, void (*add)(const ChangeCommands&)) {
    add({.add = [this, group](const std::string& name,
                              const std::string& help) { return Add(group, name, help); },
         .on = [this](CLI::App* command, Action action) { On(command, std::move(action)); },
         .study = global_.study});
  }

  void AddImportance(CLI::App* group) {
    const auto options = std::make_shared<ImportanceOptions>();
    CLI::App* importance =
        Add(group, "importance", "Show how much each parameter influences the objective");
    AddNameArgument(importance, global_.study);
    importance
        ->add_option(
            "--method", options->method,
            "ped-anova: importance for reaching the best values; fanova: share of the variance")
        ->check(OneOf({"ped-anova", "fanova"}))
        ->capture_default_str();
    importance
        ->add_option("--metric", options->metric, "Name of the objective [default: the first one]")
        ->type_name("METRIC");
    OnReading(importance,
              Plain([options](Session& session) { return ShowImportance(session, *options); }));
  }

  void AddExtend(CLI::App* group) {
    struct Values {
      StudyChange change;
      std::string wall_clock;
      std::string target;
    };
    const auto values = std::make_shared<Values>();
    CLI::App* extend = Add(group, "extend", "Change the budget of a study");
    AddNameArgument(extend, global_.study);
    extend->add_option("--trials", values->change.trials, "New total number of trials")
        ->type_name("N")
        ->check(AtLeast(0));
    extend->add_option("--add", values->change.add_trials, "Number of trials to add to the budget")
        ->type_name("N")
        ->check(AtLeast(1))
        ->excludes("--trials");
    extend
        ->add_option("--wall-clock", values->wall_clock,
                     "Total time that trials may run, such as 2h")
        ->type_name("DURATION");
    extend
        ->add_option("--failures-in-a-row", values->change.failures_in_a_row,
                     "Number of failures in a row, before the first completed trial, that end the "
                     "study (0: no "
                     "limit)")
        ->type_name("N")
        ->check(AtLeast(0));
    extend
        ->add_option("--failed-share", values->change.failed_share,
                     "Largest fraction of trials that may fail (1: no limit)")
        ->type_name("S")
        ->check(Between(0.0, 1.0));
    extend
        ->add_option("--target", values->target,
                     "Value of the objective that ends the study (none: no target)")
        ->type_name("VALUE");
    On(extend, Plain([this, values](Session& session) -> absl::Status {
         StudyChange change = values->change;
         change.name = session.study;
         absl::Duration wall_clock;
         if (!values->wall_clock.empty()) {
           if (!absl::ParseDuration(values->wall_clock, &wall_clock) ||
               wall_clock <= absl::ZeroDuration()) {
             return absl::InvalidArgumentError(
                 absl::StrCat("--wall-clock: expected a duration such as 2h or 90m, got '",
                              values->wall_clock, "'"));
           }
           change.wall_clock = wall_clock;
         }
         HPO_RETURN_IF_ERROR(ReadTarget(values->target, change));
         if (change == StudyChange{.name = change.name}) {
           return absl::InvalidArgumentError(
               "expected --trials, --add, --wall-clock, --failures-in-a-row, --failed-share or "
               "--target, got none");
         }
         return ExtendStudy(session, change);
       }));
  }

  static absl::Status ReadTarget(const std::string& text, StudyChange& change) {
    if (text.empty()) return absl::OkStatus();
    if (text == "none") {
      change.remove_target = true;
      return absl::OkStatus();
    }
    double target = 0.0;
    if (!absl::SimpleAtod(text, &target) || !std::isfinite(target)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--target: expected a number or none, got '", text, "'"));
    }
    change.target = target;
    return absl::OkStatus();
  }

  void AddOrders(CLI::App* group) {
    const auto now = std::make_shared<bool>(false);
    CLI::App* stop = Add(group, "stop", "End a study: its workers start no more trials and leave");
    stop->add_flag("--now", *now, "Also cancel the running trials");
    AddOrder(stop, StudyOrder::kStop, now);
    AddOrder(Add(group, "pause", "Start no more trials; running trials continue, and workers wait"),
             StudyOrder::kPause, nullptr);
    AddOrder(Add(group, "resume", "Resume a study that was paused, was stopped or has failed"),
             StudyOrder::kRun, nullptr);
  }

  void AddOrder(CLI::App* command, StudyOrder order, const std::shared_ptr<bool>& now) {
    AddNameArgument(command, global_.study);
    On(command, Plain([order, now](Session& session) {
         return OrderStudy(session, order, now != nullptr && *now);
       }));
  }

  void AddFileCommand(CLI::App* group, const std::string& name, const std::string& help,
                      bool validate_only) {
    const auto file = std::make_shared<StudyFileOptions>();
    CLI::App* command = Add(group, name, help);
    command->add_option("file", file->path, "Study file (YAML)")
        ->type_name("FILE")
        ->required()
        ->check(NotEmpty("a study file, or the name of a preset"));
    command->add_option("--name", file->name, "Name of the study [default: the name in the file]")
        ->type_name("NAME");
    if (validate_only) {
      OnReading(command,
                Plain([file](Session& session) { return ValidateStudyFile(session, *file); }));
    } else {
      On(command, Plain([file](Session& session) { return CreateStudy(session, *file); }));
    }
  }

  void AddTrial() {
    CLI::App* group = AddGroup("trial", "List, show, stop and retry trials");
    const auto options = std::make_shared<TrialListOptions>();
    const auto descending = std::make_shared<bool>(false);
    CLI::App* list = Add(group, "list", "List the trials, one per line");
    list->add_option(
            "--state", options->states,
            "Only trials in this state: queued, running, completed, pruned, failed or cancelled "
            "(repeatable)")
        ->type_name("STATE");
    list->add_option("--limit", options->limit, "Number of trials per page, at most 1000")
        ->type_name("N")
        ->check(Between(1, 1000))
        ->capture_default_str();
    list->add_option("--page", options->page, "Number of the page to show")
        ->type_name("N")
        ->check(AtLeast(1))
        ->capture_default_str();
    list->add_flag("--newest-first", options->newest_first, "List the newest trials first");
    CLI::Option* const sort =
        list->add_option("--sort", options->sort,
                         "Sort by a parameter, by a metric, or by number, value or time")
            ->type_name("NAME")
            ->excludes("--newest-first");
    list->add_flag("--descending", *descending, "Sort the largest values first")->needs(sort);
    list->add_option(
            "--where", options->where,
            "Only trials for which NAME=VALUE holds; the operator can also be !=, <, <=, > or "
            ">=. NAME is a name that --sort takes, or state (repeatable)")
        ->type_name("CONDITION");
    AddTagFilter(list, options->tags);
    OnReading(list, Plain([options, descending](Session& session) {
                TrialListOptions chosen = *options;
                if (*descending) chosen.sort.insert(0, "-");
                return ListTrials(session, chosen);
              }));

    AddNumbered(group, "show", "Show a trial: its parameters, result, attempts and memory",
                ShowTrial);
    AddChanges(group, AddTrialChanges);
    AddLogs(group);
    AddNumbered(group, "preempt", "Checkpoint a running trial, free its GPU and requeue the trial",
                PreemptTrial);
    AddNumbered(group, "stop", "End a running trial; its state becomes CANCELLED", StopTrial);
    AddNumbered(group, "cancel", "Remove a trial from the queue; its state becomes CANCELLED",
                CancelTrial);
  }

  void AddLogs(CLI::App* group) {
    struct Values {
      int64_t number = 0;
      std::optional<int64_t> attempt;
      std::string state_dir;
    };
    const auto values = std::make_shared<Values>();
    CLI::App* logs =
        Add(group, "logs", "Print the output of a trial; run it on the worker's machine");
    logs->add_option("number", values->number, "Number of the trial")
        ->type_name("N")
        ->required()
        ->check(AtLeast(0));
    logs->add_option("--attempt", values->attempt, "Number of the attempt [default: the last one]")
        ->type_name("K")
        ->check(AtLeast(1));
    logs->add_option("--state-dir", values->state_dir,
                     "State folder of the worker, if it was started with --state-dir")
        ->type_name("DIR");
    OnReading(logs, Plain([values](Session& session) {
                return ShowTrialLog(session, {.number = TrialNumber{values->number},
                                              .attempt = values->attempt,
                                              .state_dir = values->state_dir});
              }));
  }

  // A command on the one trial that its argument names.
  void AddNumbered(CLI::App* group, const std::string& name, const std::string& help,
                   absl::Status (*run)(Session&, TrialNumber)) {
    const auto number = std::make_shared<int64_t>();
    CLI::App* command = Add(group, name, help);
    command->add_option("number", *number, "Number of the trial")
        ->type_name("N")
        ->required()
        ->check(AtLeast(0));
    Declare(command,
            Plain([number, run](Session& session) { return run(session, TrialNumber{*number}); }),
            /*reads_alone=*/run == ShowTrial);
  }

  void AddBest() {
    struct Values {
      std::optional<int> count;
      std::string export_to;
    };
    const auto values = std::make_shared<Values>();
    CLI::App* best =
        Add(&app_, "best", "Show the best trial, or the Pareto front of several objectives");
    best->add_option("--n", values->count,
                     "Number of trials to show [default: 1, or the whole Pareto front]")
        ->type_name("N")
        ->check(Between(1, 1000));
    best->add_option("--export", values->export_to, "Copy the best trial's model folder to DIR")
        ->type_name("DIR");
    OnReading(best, Plain([values](Session& session) {
                return ShowBest(session, values->count, values->export_to);
              }));
  }

  void AddEnqueue() {
    const auto options = std::make_shared<EnqueueOptions>();
    CLI::App* enqueue = Add(&app_, "enqueue", "Queue a trial with parameters of your choice");
    enqueue
        ->add_option("params", options->params,
                     "Values of parameters; the others are drawn at random")
        ->type_name("NAME=VALUE");
    enqueue->add_flag("--demonstration", options->demonstration,
                      "Mark the trial as a demonstration, which does not count as a trial");
    enqueue->add_flag("--no-admission", options->skip_admission,
                      "Run the trial even if its predicted memory does not fit");
    enqueue
        ->add_option("--micro-batch", options->micro_batch, "Size of the micro-batch to start with")
        ->type_name("M")
        ->check(AtLeast(1));
    On(enqueue, Plain([options](Session& session) { return Enqueue(session, *options); }));
  }

  void AddWatch() {
    const auto until_finished = std::make_shared<bool>(false);
    CLI::App* watch = Add(&app_, "watch", "Follow the progress of a study");
    watch->add_flag("--until-finished", *until_finished, "End when the study has finished");
    On(watch, [until_finished](Session& session) -> absl::StatusOr<int> {
      HPO_ASSIGN_OR_RETURN(const StudyStatus study, WatchStudy(session, *until_finished));
      if (study.finished && !study.failure.empty()) return kExitStudyFailed;
      return study.counts.completed > 0 || !*until_finished ? kExitOk : kExitNothingCompleted;
    });
  }

  void AddExport() {
    struct Values {
      std::string to;
      std::string experiment;
    };
    CLI::App* group = AddGroup("export", "Export the trials of a study to other tools");
    const auto values = std::make_shared<Values>();
    CLI::App* mlflow = Add(group, "mlflow",
                           "Export each trial as an MLflow run; a second export updates the runs");
    mlflow
        ->add_option("--to", values->to, "Address of the MLflow tracking server, http://host:port")
        ->type_name("URI")
        ->envname("MLFLOW_TRACKING_URI")
        ->required();
    mlflow
        ->add_option("--experiment", values->experiment,
                     "Name of the MLflow experiment [default: the name of the study]")
        ->type_name("NAME");
    OnReading(mlflow, Plain([values](Session& session) {
                return ExportMlflow(session, values->to, values->experiment);
              }));

    CLI::App* tensorboard = Add(group, "tensorboard", "Export an event file for each trial");
    const auto folder = std::make_shared<std::string>();
    tensorboard->add_option("--to", *folder, "Log folder for TensorBoard")
        ->type_name("DIR")
        ->required();
    OnReading(tensorboard,
              Plain([folder](Session& session) { return ExportTensorboard(session, *folder); }));

    CLI::App* optuna =
        Add(group, "optuna", "Export a database that Optuna and its dashboard can open");
    const auto path = std::make_shared<std::string>();
    optuna->add_option("file", *path, "SQLite file to create, or to add the study to")
        ->type_name("FILE.db")
        ->required();
    AddNameArgument(optuna, global_.study);
    OnReading(optuna, Plain([path](Session& session) { return ExportOptuna(session, *path); }));
  }

  void AddImport() {
    CLI::App* group = AddGroup("import", "Import trials that another tool has run");
    CLI::App* optuna = Add(
        group, "optuna", "Import an Optuna study: creates the study, or adds the new trials to it");
    const auto options = std::make_shared<ImportOptions>();
    optuna->add_option("file", options->path, "SQLite file of Optuna")
        ->type_name("FILE.db")
        ->required();
    AddNameArgument(optuna, global_.study);
    optuna->add_option("--from", options->study, "Name of the Optuna study [default: the only one]")
        ->type_name("NAME");
    optuna->add_flag("--count", options->count_against_budget,
                     "Count the imported trials as part of the study's budget");
    On(optuna, Plain([options](Session& session) { return ImportOptuna(session, *options); }));
  }

  void AddCompletion() {
    const auto shell = std::make_shared<std::string>();
    CLI::App* completion =
        Add(&app_, "completion", "Print a script that completes command lines of hpo in a shell");
    completion->add_option("shell", *shell, "Which shell")
        ->type_name("SHELL")
        ->required()
        ->check(OneOf({"bash", "zsh", "fish"}));
    On(completion, Plain([shell](Session& session) -> absl::Status {
         HPO_ASSIGN_OR_RETURN(const std::string script, CompletionScript(*shell));
         session.out << script;
         return absl::OkStatus();
       }));
  }

  void AddAdmin() {
    CLI::App* group = AddGroup("admin", "Back up and restore the database of a server");
    const auto file = std::make_shared<std::string>();
    CLI::App* backup = Add(group, "backup", "Copy the database of a running server to a file");
    backup->add_option("file", *file, "File to write; an existing file is replaced")
        ->type_name("FILE")
        ->required();
    On(backup, Plain([file](Session& session) { return BackUpDatabase(session, *file); }));

    const auto database = std::make_shared<std::string>();
    CLI::App* restore =
        Add(group, "restore",
            "Replace the database of a stopped server by a backup; keeps the old one");
    restore->add_option("file", *file, "Backup file")->type_name("FILE")->required();
    restore
        ->add_option("--db", *database,
                     "Database of the server [default: the same as for hpo-server --db]")
        ->type_name("FILE");
    On(restore, [file, database](Session&) { return RunRestore(*file, *database); });
  }

  CLI::App& app_;
  GlobalOptions& global_;
  Chosen chosen_;
};

void DeclareGlobals(CLI::App& app, GlobalOptions& global) {
  app.add_option("--server", global.server, "Address of hpo-server")
      ->type_name("ADDRESS")
      ->check(ServerAddress())
      ->envname("HPO_SERVER")
      ->capture_default_str();
  app.add_option("--study", global.study,
                 "Name of the study [default: HPO_STUDY, or the only study]")
      ->type_name("STUDY")
      ->check(NotEmpty("the name of a study"));
  app.add_option(
         "--db", global.database,
         "Database file to read instead of asking a server. It is not changed, and a server "
         "can use it at the same time")
      ->type_name("FILE")
      ->check(NotEmpty("a database file"));
  app.add_option("-o,--output", global.output,
                 "Format of the output: table or json; hpo best also has yaml")
      ->check(OneOf({"table", "json", "yaml"}))
      ->capture_default_str();
  app.add_option(
         "--color", global.color,
         "Use colours in tables: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(OneOf({"auto", "always", "never"}))
      ->capture_default_str();
  app.set_version_flag("--version", absl::StrCat("hpo ", std::string(Version())));
  app.footer(kExamples);
}

// `hpo __complete WORD...`, as the scripts of hpo completion ask. Whatever is wrong, there is an
// answer, and soon.
int PrintCompletions(const CLI::App& app, const GlobalOptions& global,
                     const std::vector<std::string>& words, std::ostream& out) {
  constexpr absl::Duration kPatience = absl::Milliseconds(500);
  Completions completions = CompleteWords(app, words);
  // To copy a database would take too long.
  if (completions.wants_studies && completions.database.empty()) {
    const char* const usual = std::getenv("HPO_SERVER");
    std::string server = completions.server;
    if (server.empty()) server = usual != nullptr && *usual != '\0' ? usual : global.server;
    Client client(WithDefaultPort(server), kPatience);
    std::vector<std::string> names;
    for (const StudyStatus& study :
         client.studies().ListStudies().value_or(std::vector<StudyStatus>())) {
      names.push_back(study.spec.name);
    }
    AddStudyNames(names, words.back(), completions);
  }
  out << CompletionText(completions);
  return kExitOk;
}

// The file in place of a server, where --db names one; else null.
absl::StatusOr<std::unique_ptr<DatabaseSnapshot>> OpenDatabase(const GlobalOptions& global,
                                                               const Chosen& chosen,
                                                               std::ostream& err) {
  if (global.database.empty()) return nullptr;
  if (!chosen.reads_alone) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--db: expected a command that only reads, such as hpo status, hpo trial list or hpo best, "
        "got hpo ",
        chosen.words, "; for it, start a server on the file: hpo-server --db ",
        ShellWord(global.database)));
  }
  return DatabaseSnapshot::Open(global.database, err);
}

int PrintError(const absl::Status& status, std::ostream& err) {
  const char* before = "hpo: ";
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    err << std::exchange(before, "") << Printable(line) << "\n";
  }
  return ExitStatusOf(status);
}

Terminal WithColors(Terminal terminal, const std::string& choice) {
  if (choice != "auto") terminal.colors = choice == "always";
  return terminal;
}

// Whether the output is read by people, so that its lines may be broken. A script, a file or what a
// program has printed stays as it is.
bool IsForPeople(const GlobalOptions& global, const Chosen& chosen) {
  return global.output == "table" && chosen.words != "completion" &&
         chosen.words != "study presets" && chosen.words != "trial logs";
}

// Runs the chosen command on the database file that is named, else on the server.
absl::StatusOr<int> RunChosen(const GlobalOptions& global, const Chosen& chosen,
                              const Terminal& terminal, std::ostream& out, std::ostream& err) {
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<DatabaseSnapshot> file,
                       OpenDatabase(global, chosen, err));
  Client client(file ? file->address() : WithDefaultPort(global.server), absl::Seconds(30),
                file ? ServerSource::kSnapshot : ServerSource::kServer);
  if (file && client.WaitUntilReachable(absl::Seconds(30))) file->RemoveFiles();
  const bool wraps = terminal.columns > 0 && IsForPeople(global, chosen);
  WrappedOutput wrapped(out, std::max(1, terminal.columns));
  std::ostream wrapped_out(&wrapped);
  Session session{.client = client,
                  .out = wraps ? wrapped_out : out,
                  .terminal = WithColors(terminal, global.color),
                  .json = global.output == "json",
                  .yaml = global.output == "yaml",
                  .study = global.study,
                  .database = global.database};
  return chosen.action(session);
}

// Where no server was named and none answers, the last `hpo run` is meant.
absl::StatusOr<int> RunOnLastRun(GlobalOptions global, const Chosen& chosen,
                                 const Terminal& terminal, std::ostream& out, std::ostream& err,
                                 const absl::Status& unreachable) {
  const std::optional<LastRun> last = FindLastRun();
  if (!last) return unreachable;
  const std::string database = last->folder + "/hpo.db";
  if (!chosen.reads_alone) {
    return absl::UnavailableError(absl::StrCat(
        unreachable.message(), "; to start one for the last hpo run, which was of study ",
        last->study, ": hpo-server --db ", ShellWord(database)));
  }
  err << "hpo: no hpo-server answers at " << Printable(WithDefaultPort(global.server))
      << "; reading the database of the last hpo run: " << Printable(database) << std::endl;
  global.database = database;
  if (global.study.empty()) global.study = last->study;
  return RunChosen(global, chosen, terminal, out, err);
}

}  // namespace

int RunHpo(int argc, const char* const* argv, const Terminal& terminal, std::ostream& out,
           std::ostream& err) {
  CLI::App app("Runs and controls hyperparameter studies, and predicts the memory of their trials.",
               "hpo");
  GlobalOptions global;
  DeclareGlobals(app, global);
  const Commands commands(app, global);
  if (argc > 2 && absl::string_view(argv[1]) == "__complete") {
    return PrintCompletions(app, global, {argv + 2, argv + argc}, out);
  }
  const int columns =
      terminal.columns > 0 ? std::min(terminal.columns, kTextColumns) : kTextColumns;
  if (const auto over = ParseCommandLine(app, argc, argv, out, err, columns)) return *over;
  const char* const usual_study = std::getenv("HPO_STUDY");
  if (global.study.empty() && usual_study != nullptr) global.study = usual_study;
  if (global.output == "yaml" && !app.got_subcommand("best")) {
    err << "hpo: --output: expected table or json, got 'yaml', which only hpo best writes\n";
    return kUsageExit;
  }
  const Chosen& chosen = commands.chosen();
  absl::StatusOr<int> status = RunChosen(global, chosen, terminal, out, err);
  const bool names_server = app.count("--server") > 0 || !global.database.empty();
  if (IsUnreachable(status.status()) && !names_server) {
    status = RunOnLastRun(global, chosen, terminal, out, err, status.status());
  }
  return status.ok() ? *status : PrintError(status.status(), err);
}

}  // namespace hpo
