// Tested by tests/integration/test_run.py.
#include "cli/commands/run_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/client/last_run.h"
#include "cli/client/local_service.h"
#include "cli/client/session.h"
#include "cli/commands/exchange/export_model.h"
#include "cli/commands/open_command.h"
#include "cli/commands/reminder.h"
#include "cli/commands/studies/watch.h"
#include "cli/commands/trials/trial_commands.h"
#include "cli/render/progress.h"
#include "cli/render/study_text.h"
#include "cli/render/trial_warnings.h"
#include "cli/render/wording.h"
#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/command_line/exit_status.h"
#include "common/command_line/shell_word.h"
#include "common/device/host_memory.h"
#include "common/device/nvml.h"
#include "common/device/visible_gpus.h"
#include "common/files/user_folder.h"
#include "common/models/task_kind.h"
#include "common/space/placeholders.h"
#include "common/study/study_status.h"
#include "common/study_file/study_file.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = 130;
constexpr size_t kMostWarnings = 5;  // of trainers, that are repeated at the end
constexpr absl::Duration kPollWorkers = absl::Milliseconds(50);
// Of several workers the first to register may be the one on the smallest card.
constexpr absl::Duration kFleetsStart = absl::Seconds(10);
// A reminder is no use late.
constexpr absl::Duration kReminderDeadline = absl::Seconds(3);

// That a worker would use.
size_t NumGpus() {
  const absl::StatusOr<std::unique_ptr<NvmlProbe>> probe = NvmlProbe::Create();
  if (!probe.ok()) return 0;
  const absl::StatusOr<VisibleGpus> visible = ListVisible(**probe);
  return visible.ok() ? visible->gpus.size() : 0;
}

bool UsesCpu(const RunOptions& options) {
  return options.device == "cpu" ||
         (options.device.empty() && options.gpu.empty() && NumGpus() == 0);
}

bool StartsSeveralWorkers(const RunOptions& options) {
  if (options.num_workers > 1) return true;
  const bool all = options.gpu == "all" || options.gpu == "visible" ||
                   (options.gpu.empty() && !UsesCpu(options));
  return all && NumGpus() > 1;
}

// The worker's device: every card, else the CPU with a limit.
absl::StatusOr<std::vector<std::string>> DeviceArguments(const RunOptions& options) {
  std::vector<std::string> arguments;
  const bool cpu = UsesCpu(options);
  std::string limit = options.memory_limit;
  if (!cpu && options.num_workers > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workers: expected --device cpu too, got ", options.num_workers,
                     " workers on a machine with a GPU; a GPU has one worker"));
  }
  if (!cpu) {
    arguments = {"--gpu", options.gpu.empty() ? "visible" : options.gpu};
  } else {
    arguments = {"--device", "cpu"};
    if (!options.gpu.empty()) arguments.insert(arguments.end(), {"--gpu", options.gpu});
    if (limit.empty()) {
      HPO_ASSIGN_OR_RETURN(const Bytes free, HostMemoryReader().ReadAllowed());
      const int64_t share = free.count / 2 / options.num_workers / MiB(1).count;
      limit = absl::StrCat(std::max<int64_t>(1, share), "MiB");
    }
    if (options.num_workers > 1) {
      arguments.insert(arguments.end(), {"--workers", absl::StrCat(options.num_workers)});
    }
  }
  if (!limit.empty()) arguments.insert(arguments.end(), {"--memory-limit", limit});
  return arguments;
}

std::string FolderOf(const RunOptions& options, const std::string& study) {
  if (!options.folder.empty()) return fs::absolute(options.folder).string();
  return UserFolder("XDG_DATA_HOME", ".local/share") + "/hpo/runs/" + study;
}

void AppendShellWord(std::string* out, const std::string& word) { *out += ShellWord(word); }

// What is wrong before anything is read.
absl::Status CheckWords(const RunOptions& options) {
  if (options.folder.empty() && UserFolder("XDG_DATA_HOME", ".local/share").empty()) {
    return absl::InvalidArgumentError(
        "--dir: expected a folder, as neither XDG_DATA_HOME nor HOME is set");
  }
  const std::vector<std::string>& words = options.worker_arguments;
  if (!words.empty() && !absl::StartsWith(words.front(), "-")) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected one study, and after -- options of hpo-worker, got '", words.front(),
                     "' as well"));
  }
  return absl::OkStatus();
}

// What runs this study again, with some more options; its budget and target are kept in the
// database.
std::string Again(const RunOptions& options, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"hpo", "run", ShellWord(options.study)};
  const std::pair<const char*, const std::string*> own[] = {
      {"--name", &options.name},
      {"--dir", &options.folder},
      {"--gpu", &options.gpu},
      {"--device", &options.device},
      {"--memory-limit", &options.memory_limit}};
  for (const auto& [name, value] : own) {
    if (!value->empty()) words.insert(words.end(), {name, ShellWord(*value)});
  }
  if (options.num_workers > 1) {
    words.insert(words.end(), {"--workers", absl::StrCat(options.num_workers)});
  }
  for (const auto& [name, value] : options.passed_on) {
    words.insert(words.end(), {name, ShellWord(value)});
  }
  if (options.preflight) words.emplace_back("--preflight");
  words.insert(words.end(), more.begin(), more.end());
  if (!options.worker_arguments.empty()) words.emplace_back("--");
  for (const std::string& word : options.worker_arguments) words.push_back(ShellWord(word));
  return absl::StrJoin(words, " ");
}

// What a run says: its news, and where there are none for a while what it waits for. Where the
// output is JSON, there are no news, and the rest goes to standard error.
class RunVoice {
 public:
  explicit RunVoice(Session& session)
      : json_(session.json),
        display_(session.terminal, session.json ? nowhere_ : session.out,
                 [this] { reminder_.Said(); }),
        reminder_([this](const std::string& line) {
          if (!json_) return display_.Remind(line);
          std::cerr << line << std::endl;
        }) {}

  WatchDisplay& display() { return display_; }
  Reminder& reminder() { return reminder_; }
  void Say(const std::string& line) {
    if (!json_) return display_.Say(line);
    std::cerr << line << std::endl;
  }

 private:
  const bool json_;
  std::ostream nowhere_{nullptr};
  WatchDisplay display_;
  Reminder reminder_;
};

// A run's news. Where a model is to be exported, the first trial that leaves none is named, now and
// not when the night is over.
class RunNews final : public WatchListener {
 public:
  // `voice` outlives it.
  RunNews(RunVoice& voice, bool wants_model) : voice_(voice), wants_model_(wants_model) {}

  void Show(const StudyStatus& study) override { voice_.display().Show(study); }
  void Show(const TrialEvent& change, const StudyStatus& study) override {
    voice_.display().Show(change, study);
    const Trial& trial = change.trial;
    const Completed* const completed =
        trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
    if (!wants_model_ || completed == nullptr || !completed->model_path.empty()) return;
    wants_model_ = false;
    voice_.Say(absl::StrCat("warning: --export: trial ", trial.id.number.value, " left no model; ",
                            kWhereModelsGo));
  }
  void Close() override { voice_.display().Close(); }

 private:
  RunVoice& voice_;
  bool wants_model_;
};

struct NextStep {
  std::string command;
  std::string what;
};

std::string StepLines(const std::vector<NextStep>& steps) {
  size_t widest = 0;
  for (const NextStep& step : steps) widest = std::max(widest, step.command.size());
  std::string text;
  for (const auto& [command, what] : steps) {
    absl::StrAppend(&text, "  ", command, std::string(widest - command.size(), ' '), "  # ", what,
                    "\n");
  }
  return text;
}

// What makes the study go on.
NextStep GoOn(const RunOptions& options, const StudyStatus& study) {
  const Budget& budget = study.spec.budget;
  if (!study.failure.empty()) return {Again(options), "go on, once the cause is mended"};
  if (absl::StartsWith(study.waiting_for, kAllFailed))
    return {Again(options), "run the failed trials again, once it is mended"};
  if (absl::StartsWith(study.waiting_for, kSpaceUsedUp)) {
    return {Again(options, {"--edit"}), "go on, once the study's file has more values"};
  }
  // Where it ended before its budget was used up, the watch has said why, and what to change.
  if (!study.waiting_for.empty()) return {Again(options), "go on, once that is changed"};
  const bool time_is_up = budget.wall_clock && study.wall_clock_used >= *budget.wall_clock;
  if (budget.trials && !time_is_up) return {Again(options, {"--add", "20"}), "run 20 more trials"};
  return {Again(options), "go on, with a larger budget in its file"};
}

// Commands for the time after this one, whose server has then ended.
std::string NextSteps(const RunOptions& options, const StudyStatus& study, bool has_model,
                      std::optional<TrialNumber> failed) {
  const std::string of_database =
      absl::StrCat("hpo --db ", ShellWord(FolderOf(options, study.spec.name) + "/hpo.db"), " ");
  const std::string of_study = absl::StrCat(" --study ", ShellWord(study.spec.name));
  std::vector<NextStep> looks;
  const auto look = [&](const std::string& words, const char* what) {
    looks.push_back({absl::StrCat(of_database, words, of_study), what});
  };
  if (study.counts.completed > 0) look("best -o yaml", "the best parameters, for a file");
  if (has_model && options.export_to.empty()) {
    look(absl::StrCat("best --export ", ShellWord("./" + study.spec.name + "-model")),
         "the best model's folder");
  }
  look("trial list", "every trial");
  if (study.best_trial) {
    look(absl::StrCat("trial logs ", study.best_trial->value), "what the best trial printed");
  }
  if (failed)
    look(absl::StrCat("trial logs ", failed->value), "what the last failed trial printed");
  look(absl::StrCat("export optuna ", ShellWord(study.spec.name + ".db")),
       "for Optuna and its dashboard");
  return absl::StrCat("\nnext:\n", StepLines({GoOn(options, study)}),
                      "to look at it, without a server:\n", StepLines(looks));
}

absl::StatusOr<bool> HasModel(Session& session) {
  HPO_ASSIGN_OR_RETURN(const std::vector<Trial> best,
                       session.client.trials().BestTrials(session.study, 1));
  const Completed* const completed = best.empty() || !best.front().outcome
                                         ? nullptr
                                         : std::get_if<Completed>(&*best.front().outcome);
  return completed != nullptr && !completed->model_path.empty();
}

// The newest of those that failed; nullopt: none has.
absl::StatusOr<std::optional<TrialNumber>> LastFailed(Session& session) {
  HPO_ASSIGN_OR_RETURN(
      const TrialPage failed,
      session.client.trials().ListTrials(
          session.study,
          {.filter = {.states = {TrialState::kFailed}, .newest_first = true}, .page_size = 1}));
  if (failed.trials.empty()) return std::nullopt;
  return failed.trials.front().id.number;
}

// The best trial, with its model's copy where one was asked for. It is shown as well where its
// model cannot be copied.
absl::Status ShowBestOf(Session& session, const RunOptions& options) {
  const absl::Status shown = ShowBest(session, /*count=*/1, options.export_to);
  if (shown.ok() || options.export_to.empty()) return shown;
  HPO_RETURN_IF_ERROR(ShowBest(session, /*count=*/1, /*export_to=*/""));
  return Annotate(shown, "--export");
}

absl::StatusOr<int> ShowEnd(Session& session, const RunOptions& options, const StudyStatus& study) {
  if (!session.json) {
    session.out << "\n"
                << DescribeProgress(study) << " trials, " << DescribeOoms(study.counts) << "\n"
                << FailureText(study);
  }
  const absl::Status best =
      study.counts.completed > 0 ? ShowBestOf(session, options) : absl::OkStatus();
  if (!session.json) {
    HPO_ASSIGN_OR_RETURN(const bool has_model, HasModel(session));
    HPO_ASSIGN_OR_RETURN(const std::optional<TrialNumber> failed, LastFailed(session));
    session.out << NextSteps(options, study, has_model, failed);
  }
  HPO_RETURN_IF_ERROR(best);
  if (!study.failure.empty()) return kExitStudyFailed;
  return study.counts.completed > 0 ? kExitOk : kExitNothingCompleted;
}

// The study waits for what does not come. `study`: as it was left, where something of it ran.
absl::StatusOr<int> EndBlocked(Session& session, const RunOptions& options, const std::string& why,
                               const StudyStatus* study) {
  if (study != nullptr) HPO_RETURN_IF_ERROR(ShowEnd(session, options, *study).status());
  // Where the output is JSON, it stays JSON.
  std::ostream& out = session.json ? std::cerr : session.out;
  out << "\nhpo run ends, as nothing more can run: " << Printable(why) << std::endl;
  if (study == nullptr) {
    out << "to go on, once that is changed: " << Again(options) << std::endl;
  }
  return kExitBlocked;
}

// Asked from another thread.
std::string WhatIsAwaited(Client& client, const LocalService& service, const std::string& study) {
  const absl::StatusOr<StudyStatus> status = client.studies().GetStudy(study);
  if (!status.ok()) {
    return absl::StrCat("waits: hpo-server does not answer at ", service.address(), ": ",
                        Printable(status.status().message()));
  }
  const absl::StatusOr<TrialPage> running =
      client.trials().ListTrials(study, {.filter = {.states = {TrialState::kRunning}}});
  std::string line =
      AwaitedLine(*status, running.ok() ? running->trials : std::vector<Trial>{}, absl::Now());
  if (line.empty()) {
    const std::string word = service.LastWordOfWorker();
    line = absl::StrCat("waits for hpo-worker, whose log ",
                        word.empty() ? "is empty" : "ends: ", Printable(word));
  }
  if (!service.interrupted()) return line;
  return absl::StrCat("stops: the worker gives its trial back; another Ctrl-C ends it at once; ",
                      line);
}

// What is said at once when somebody wants the run to end.
std::string StoppingLine(int num_signals) {
  return num_signals == 1
             ? "stops: the worker gives back what it runs; another Ctrl-C ends it at once"
             : "stops: what still runs is ended at once";
}

// What an interrupted run has kept, and how it goes on.
void ShowInterrupted(const RunOptions& options, const std::string& folder,
                     const std::optional<StudyStatus>& study, RunVoice& voice) {
  std::string kept = absl::StrCat("interrupted: the results are kept in ", folder);
  if (study) {
    const TrialCounts& counts = study->counts;
    kept = absl::StrCat("interrupted: ", DescribeProgress(*study),
                        " trials have ended; their results are kept in ", folder);
    const int64_t open = counts.queued + counts.running;
    if (open > 0) {
      absl::StrAppend(&kept, "; ", open, open == 1 ? " trial" : " trials",
                      " that had not ended will run again");
    }
  }
  voice.Say(kept);
  voice.Say(absl::StrCat("to go on: ", Again(options)));
}

// Until the study has a worker, so that nobody is told that it waits for one.
void WaitForWorker(Session& session, LocalService& service) {
  while (!service.WaitForEnd(kPollWorkers)) {
    const absl::StatusOr<StudyStatus> study = session.client.studies().GetStudy(session.study);
    if (!study.ok() || study->finished || study->blocked) return;
    for (const WorkerStatus& worker : study->workers) {
      if (worker.alive) return;
    }
  }
}

// Who runs a study again whose trials have all failed has mended the cause.
absl::Status RetryIfAllFailed(Session& session) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  if (!absl::StartsWith(study.waiting_for, kAllFailed)) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const RetryResult retried,
                       session.client.trials().RetryTrials(session.study, {.all_failed = true}));
  if (session.json || retried.trials.empty()) return absl::OkStatus();
  session.out << kAllFailed << "; " << retried.trials.size()
              << (retried.trials.size() == 1 ? " configuration runs" : " configurations run")
              << " again, as new trials" << std::endl;
  return absl::OkStatus();
}

// Starts the worker and follows the study.
absl::StatusOr<int> Follow(Session& session, const RunOptions& options, LocalService& service,
                           RunVoice& voice) {
  HPO_RETURN_IF_ERROR(RetryIfAllFailed(session));
  HPO_ASSIGN_OR_RETURN(const StudyStatus before, session.client.studies().GetStudy(session.study));
  HPO_RETURN_IF_ERROR(
      service.StartWorker([&voice](int num_signals) { voice.Say(StoppingLine(num_signals)); }));
  voice.reminder().WaitFor(
      [client = std::make_shared<Client>(service.address(), kReminderDeadline, ServerSource::kOwn),
       &service, study = session.study] { return WhatIsAwaited(*client, service, study); });
  WaitForWorker(session, service);
  // Its server's end is the end: nobody starts another.
  const WatchOptions watch{
      .study = session.study,
      .until_finished = true,
      .after_sequence = before.sequence,
      .patience = absl::ZeroDuration(),
      .until_blocked_for = StartsSeveralWorkers(options) ? kFleetsStart : absl::ZeroDuration()};
  RunNews news(voice, !options.export_to.empty());
  const absl::StatusOr<StudyStatus> study = Watch(session.client, watch, news);
  voice.reminder().WaitFor(nullptr);
  if (!session.json) {
    for (const std::string& text : TrialWarnings(service.WorkerLog(), kMostWarnings)) {
      session.out << "warning: " << Printable(text) << "\n";
    }
  }
  // A watch tells no news of what was over before it began.
  if (study.ok() && before.finished && !session.json && !study->waiting_for.empty()) {
    session.out << "ended: " << Printable(study->waiting_for) << "\n";
  }
  if (study.ok() && study->finished) return ShowEnd(session, options, *study);
  if (service.interrupted()) {
    service.WaitForEnd(absl::InfiniteDuration());
    ShowInterrupted(options, FolderOf(options, session.study), service.StudyAtEnd(), voice);
    return kInterrupted;
  }
  if (study.ok() && study->blocked) {
    const bool has_run = study->counts.Finished() > 0;
    return EndBlocked(session, options, study->waiting_for, has_run ? &*study : nullptr);
  }
  const LocalService::Failure failure = service.WorkerFailure();
  if (failure.blocked) return EndBlocked(session, options, failure.text, nullptr);
  if (absl::StrContains(failure.text, " is given back")) {
    return absl::FailedPreconditionError(
        absl::StrCat(failure.text, "; to go on, once that is mended: ", Again(options)));
  }
  if (!failure.text.empty()) return absl::FailedPreconditionError(failure.text);
  HPO_RETURN_IF_ERROR(study.status());
  return absl::InternalError("hpo-server has ended while the study went on");
}

// What the worker is given to run, and the placeholders of it: now, not at the first trial.
absl::Status CheckCommands(const RunOptions& options, const StudySpec& spec) {
  // What stands after -- may name one, too.
  bool has_program = !spec.trainer.command.empty() || !options.worker_arguments.empty();
  for (const auto& [name, value] : options.passed_on) {
    has_program = has_program || name == "--trainer";
    if (name != "--trainer" && name != "--metrics-file") continue;
    HPO_RETURN_IF_ERROR(Annotate(CheckPlaceholders(value, ParameterNames(spec)), name));
  }
  if (has_program || ParseTaskKind(spec.trainer.task)) return absl::OkStatus();
  return Unexpected("trainer.command",
                    absl::StrCat("a program for the task ", spec.trainer.task,
                                 ", here or by --trainer \"COMMAND\""),
                    "none");
}

// That this machine has as many GPUs as a trial takes, and a program that uses several.
absl::Status CheckGpus(const RunOptions& options, const StudySpec& spec, bool has_program) {
  const int64_t wanted = spec.trainer.gpus;
  if (wanted == 1) return absl::OkStatus();
  if (!has_program) {
    return Unexpected(
        "trainer.gpus",
        "1 without a program of your own (trainer.command, or --trainer \"COMMAND\"), "
        "as hpo-trainer trains on one GPU",
        absl::StrCat(wanted));
  }
  const auto present = static_cast<int64_t>(UsesCpu(options) ? 0 : NumGpus());
  if (present >= wanted) return absl::OkStatus();
  return Unexpected("trainer.gpus",
                    absl::StrCat("at most the number of GPUs that a worker may use here, which is ",
                                 present, UsesCpu(options) ? " with the CPU as its device" : ""),
                    absl::StrCat(wanted));
}

// The server's error with the command that takes a changed file here, where no other server runs.
absl::Status WithAdviceForRun(const RunOptions& options, const std::string& study,
                              const absl::Status& error) {
  if (error.ok()) return error;
  const std::string edit = absl::StrCat("hpo study edit ", study, " FILE");
  return absl::Status(error.code(),
                      absl::StrReplaceAll(error.message(), {{edit, Again(options, {"--edit"})}}));
}

void WarnOfNoDryRuns(const RunOptions& options, const StudySpec& spec, RunVoice& voice) {
  if (spec.memory.preflight == MemoryPreflight::kDryRun && UsesCpu(options)) {
    voice.Say(
        "warning: memory.preflight: no configuration is dry-run, as a dry run emulates a GPU, and "
        "the worker uses the CPU");
  }
}

std::vector<std::string> ServerArguments(const RunOptions& options,
                                         const StudyOverrides& overrides) {
  std::vector<std::string> arguments = {"--study", options.study, "--resume", "--http",
                                        "127.0.0.1:0"};
  if (!options.name.empty()) arguments.insert(arguments.end(), {"--name", options.name});
  if (options.edit) arguments.emplace_back("--edit");
  if (overrides.task) arguments.insert(arguments.end(), {"--task", *overrides.task});
  return arguments;
}

// A run goes on without its page.
void ShowPage(Session& session, bool in_browser) {
  const absl::StatusOr<ServerStatus> server = session.client.GetServer();
  if (!server.ok() || server->page.empty()) return;
  const std::string address = PageAddress(server->page, session.study, /*token=*/"");
  if (!session.json) session.out << "page " << address << std::endl;
  if (in_browser) OpenInBrowser(address);
}

}  // namespace

absl::StatusOr<int> RunStudy(Session& session, const RunOptions& options) {
  HPO_RETURN_IF_ERROR(CheckWords(options));
  // Now, not when the night is over.
  HPO_RETURN_IF_ERROR(options.export_to.empty() ? absl::OkStatus()
                                                : CheckExportTarget(options.export_to));
  HPO_ASSIGN_OR_RETURN(StudyOverrides overrides, OverridesFromEnvironment());
  if (!options.name.empty()) overrides.name = options.name;
  overrides.trials = options.trials.has_value() ? options.trials : overrides.trials;
  overrides.target = options.target;
  // Whoever runs a file runs its program, unless they name another.
  const bool has_trainer =
      std::any_of(options.passed_on.begin(), options.passed_on.end(),
                  [](const auto& option) { return option.first == "--trainer"; });
  if (has_trainer) overrides.task = "custom";
  HPO_ASSIGN_OR_RETURN(const StudySpec spec, LoadStudy(options.study, overrides));
  HPO_RETURN_IF_ERROR(CheckCommands(options, spec));
  HPO_RETURN_IF_ERROR(CheckGpus(options, spec, has_trainer || !spec.trainer.command.empty()));
  LocalServiceOptions local{.programs = ProgramFolder(),
                            .folder = FolderOf(options, spec.name),
                            .server_arguments = ServerArguments(options, overrides),
                            .study = spec.name};
  HPO_ASSIGN_OR_RETURN(local.worker_arguments, DeviceArguments(options));
  if (!spec.trainer.command.empty() && !has_trainer) {
    local.worker_arguments.emplace_back("--allow-commands");
  }
  if (options.preflight) local.worker_arguments.emplace_back("--preflight");
  for (const auto& [name, value] : options.passed_on) {
    local.worker_arguments.insert(local.worker_arguments.end(), {name, value});
  }
  local.worker_arguments.insert(local.worker_arguments.end(), options.worker_arguments.begin(),
                                options.worker_arguments.end());
  RunVoice voice(session);
  voice.reminder().WaitFor([folder = local.folder] {
    return absl::StrCat("waits for hpo-server to start; its log: ", folder, "/server.log");
  });
  const absl::StatusOr<std::unique_ptr<LocalService>> started = LocalService::Start(local);
  HPO_RETURN_IF_ERROR(WithAdviceForRun(options, spec.name, started.status()));
  LocalService* const service = started->get();
  RememberRun({.folder = local.folder, .study = spec.name});
  Client client(service->address(), absl::Seconds(30), ServerSource::kOwn);
  Session own{.client = client,
              .out = session.out,
              .terminal = session.terminal,
              .json = session.json,
              .study = spec.name};
  // Not over the server's file: what is given once would be undone by a run without it.
  const StudyUpdate update{
      .trials = options.trials, .add_trials = options.add_trials, .target = options.target};
  if (update != StudyUpdate{}) {
    HPO_RETURN_IF_ERROR(client.studies().UpdateStudy(spec.name, update).status());
  }
  WarnOfNoDryRuns(options, spec, voice);
  if (!own.json) {
    own.out << "study " << spec.name << ": hpo-worker "
            << absl::StrJoin(local.worker_arguments, " ", AppendShellWord) << "\n"
            << "folder " << local.folder << "; look with: HPO_SERVER=" << service->address()
            << " hpo status --study " << ShellWord(spec.name) << std::endl;
  }
  ShowPage(own, options.open);
  const absl::StatusOr<int> end = Follow(own, options, *service, voice);
  voice.reminder().WaitFor([folder = local.folder] {
    return absl::StrCat("waits for hpo-worker and hpo-server to end; their logs are in ", folder);
  });
  return end;
}

}  // namespace hpo::cli
