// hpo-worker: supervises one trainer on one device. See --help.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/command_line/standard_streams.h"
#include "common/device/host_memory.h"
#include "common/device/nvml.h"
#include "common/device/visible_gpus.h"
#include "common/files/dry_run_package.h"
#include "common/files/user_folder.h"
#include "common/tls/server_route.h"
#include "spdlog/spdlog.h"
#include "worker/agent/attempt/state_folder.h"
#include "worker/agent/device/select_gpu.h"
#include "worker/agent/engine/engine_name.h"
#include "worker/agent/engine/engine_time.h"
#include "worker/agent/loop/agent_loop.h"
#include "worker/agent/loop/fleet.h"
#include "worker/agent/preflight/dry_run_ability.h"
#include "worker/agent/preflight/dry_runner.h"
#include "worker/agent/process/stray_processes.h"
#include "worker/agent/process/wait_for_machine.h"
#include "worker/agent/session/grpc_coordinator_client.h"
#include "worker/agent/session/study_command.h"
#include "worker/agent/worker_options.h"
#include "worker/command/command_template.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

// What helps where the GPUs cannot be had.
std::string AdviceWithoutGpu(const WorkerOptions& options) {
  const int64_t gpus = options.gpus_per_trial.value_or(1);
  if (gpus == 1) return "; without a GPU, give --device cpu --memory-limit 2GiB";
  return absl::StrCat("; --gpus-per-trial ", gpus, " needs a machine with ", gpus,
                      " GPUs, as a trial on several GPUs cannot run on a CPU");
}

// The device that this process works on.
struct Device {
  std::string card_uuid;  // of the first GPU; empty: the CPU
  int64_t gpus = 1;       // that a trial takes
  std::string trainer_device;
  std::map<std::string, std::string> trainer_environment;
  std::unique_ptr<GpuProbe> probe;
  std::unique_ptr<DeviceCapacity> capacity;
};

void WarnAboutHostMemory(Bytes limit) {
  const absl::StatusOr<Bytes> allowed = HostMemoryReader().ReadAllowed();
  if (allowed.ok() && *allowed < limit) {
    spdlog::warn("--memory-limit {} is more than this machine can give now ({})",
                 FormatBytes(limit), FormatBytes(*allowed));
  }
}

Device CpuDevice(Bytes limit) {
  WarnAboutHostMemory(limit);
  Device device;
  device.trainer_device = "cpu";
  // A trainer that would rather use a card must not find one.
  device.trainer_environment = {{"CUDA_VISIBLE_DEVICES", ""}};
  device.capacity = std::make_unique<CpuCapacity>(limit);
  return device;
}

// The trainer sees these GPUs alone, so that the first is cuda:0 whatever its number here.
Device GpuDevice(std::unique_ptr<GpuProbe> probe, const std::vector<GpuState>& gpus,
                 const WorkerOptions& options) {
  Device device;
  device.card_uuid = gpus.front().uuid;
  device.gpus = static_cast<int64_t>(gpus.size());
  device.trainer_device = "cuda:0";
  device.trainer_environment = {{kVisibleGpusVariable, UuidsOf(gpus)}};
  if (!options.allocator.empty()) {
    // Torch before 2.9 knows the first alone; later ones read it first.
    device.trainer_environment["PYTORCH_CUDA_ALLOC_CONF"] = options.allocator;
    device.trainer_environment["PYTORCH_ALLOC_CONF"] = options.allocator;
  }
  std::vector<std::unique_ptr<GpuCapacity>> capacities;
  for (const GpuState& gpu : gpus) {
    capacities.push_back(std::make_unique<GpuCapacity>(*probe, gpu.uuid, options.memory_limit));
  }
  device.capacity = std::make_unique<GpuSetCapacity>(std::move(capacities));
  device.probe = std::move(probe);
  return device;
}

// Of what torch reads from the environment: no limit can be set with another allocator, so every
// trial would fail.
absl::Status CheckAllocatorVariables(const WorkerOptions& options) {
  if (!options.trainer.empty() || !options.allocator.empty()) return absl::OkStatus();
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || !absl::StrContains(value, "cudaMallocAsync")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": hpo-trainer needs torch's native allocator, got '", value,
                     "'; leave backend out, or give --allocator"));
  }
  return absl::OkStatus();
}

// The GPUs that --gpu names.
struct ChosenGpus {
  std::unique_ptr<GpuProbe> probe;
  std::vector<GpuState> gpus;
  std::vector<GpuState> visible;
};

absl::StatusOr<ChosenGpus> ChooseGpus(const WorkerOptions& options) {
  ChosenGpus chosen;
  absl::StatusOr<std::unique_ptr<NvmlProbe>> probe = NvmlProbe::Create();
  if (!probe.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("no usable GPU: ", probe.status().message(), AdviceWithoutGpu(options)));
  }
  HPO_ASSIGN_OR_RETURN(const std::vector<GpuState> gpus, (*probe)->List());
  const VisibilityVariables variables = OwnVisibilityVariables();
  absl::StatusOr<VisibleGpus> selected = SelectGpus(gpus, variables, options.gpu);
  if (!selected.ok()) {
    return absl::Status(selected.status().code(),
                        absl::StrCat(selected.status().message(), AdviceWithoutGpu(options)));
  }
  if (!selected->warning.empty()) spdlog::warn("{}", selected->warning);
  chosen.visible = SelectVisible(gpus, variables).gpus;
  chosen.gpus = std::move(selected->gpus);
  chosen.probe = *std::move(probe);
  return chosen;
}

// Of a worker's set the place of its first GPU among the visible ones; empty where it has all of
// them. Another host that the engine starts this worker on again has other UUIDs, and other
// numbers.
std::string SuffixOf(const std::vector<GpuState>& set, const std::vector<GpuState>& visible) {
  if (set.size() == visible.size()) return "";
  const auto place = std::find_if(visible.begin(), visible.end(), [&](const GpuState& one) {
    return one.uuid == set.front().uuid;
  });
  return absl::StrCat(":gpu", place - visible.begin());
}

std::string BesideThisProgram(const char* name) { return absl::StrCat(ProgramFolder(), "/", name); }

std::string OwnTrainer() { return BesideThisProgram("hpo-trainer"); }

// A program that does not speak the trainer protocol runs below one of ours that does.
std::vector<std::string> TrainerArguments(const WorkerOptions& options) {
  if (options.trainer.empty()) return {OwnTrainer()};
  if (!options.IsPlainProgram()) return {"/bin/sh", "-c", "exec " + options.trainer};
  std::vector<std::string> arguments = {BesideThisProgram("hpo-command-trainer")};
  for (const std::string& pattern : options.metric_patterns) {
    arguments.insert(arguments.end(), {"--metric-pattern", pattern});
  }
  if (!options.metrics_file.empty()) {
    arguments.insert(arguments.end(), {"--metrics-file", options.metrics_file});
  }
  arguments.insert(arguments.end(), {"--", options.trainer});
  return arguments;
}

// Measures a card, with our own trainer; nullopt where there is nothing to measure.
std::optional<DeviceProfiles> MakeProfiles(const WorkerOptions& options, const Device& device,
                                           const std::string& state) {
  if (!options.trainer.empty() || device.probe == nullptr) return std::nullopt;
  return DeviceProfiles(
      {.argv = {OwnTrainer(), "--profile-device", "--device", device.trainer_device},
       .environment = device.trainer_environment,
       .log_path = state + "/device_profile.log"},
      state + "/device_profile.json");
}

std::unique_ptr<TrainerLauncher> MakeLauncher(const WorkerOptions& options, const Device& device,
                                              const std::string& mark) {
  return std::make_unique<CommandLauncher>(
      TrainerArguments(options), device.trainer_environment, mark,
      options.trainer.empty() ? "hpo-trainer" : options.trainer);
}

// Kills that the kernel has counted against our control group, in which the trainer also lives.
int64_t CountOomKills() {
  const absl::StatusOr<CgroupMemory> memory = HostMemoryReader().ReadCgroup();
  return memory.ok() ? memory->oom_kills : 0;
}

// What this process keeps on the disk, held against others.
struct OwnState {
  std::string name;
  StateFolder folder;
  Outbox outbox;
};

absl::StatusOr<OwnState> OpenState(const WorkerOptions& options, const std::string& card_uuid) {
  std::string name = options.name;
  if (name.empty()) {
    HPO_ASSIGN_OR_RETURN(name, DefaultWorkerName(HostName(), card_uuid, options.state_dir));
  }
  HPO_ASSIGN_OR_RETURN(StateFolder folder, OpenStateFolder(options.state_dir, name));
  HPO_ASSIGN_OR_RETURN(Outbox outbox, Outbox::Open(folder.path + "/outbox"));
  return OwnState{std::move(name), std::move(folder), std::move(outbox)};
}

Backoff PausesAtStart() {
  const AgentOptions times;
  return Backoff(times.first_retry, times.longest_retry, getpid());
}

// A full disk, and whatever else may pass, is waited for. So is, for a while, the worker of the
// same name of an `hpo run` that was killed just now: it still gives its trial back.
absl::StatusOr<OwnState> WaitForState(const WorkerOptions& options, const std::string& card_uuid,
                                      StopSignal& stop) {
  constexpr absl::Duration kEndOfAnother = absl::Seconds(15);
  const absl::Time patient_until = absl::Now() + kEndOfAnother;
  absl::StatusOr<OwnState> state;
  const absl::Status opened = WaitForMachine(stop, PausesAtStart(), [&] {
    state = OpenState(options, card_uuid);
    const bool is_taken = absl::IsAlreadyExists(state.status());
    return is_taken && absl::Now() < patient_until
               ? absl::UnavailableError(state.status().message())
               : state.status();
  });
  if (!opened.ok()) return opened;
  return state;
}

// The study's folder, where the program would not find it: it is another machine's, or misspelt.
absl::Status CheckWorkdir(const StudyCommand& found) {
  std::error_code error;
  if (found.workdir.empty() || fs::is_directory(found.workdir, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "trainer.workdir of study ", found.study, ": expected a folder of this machine, ", "got ",
      found.workdir, " (below ", fs::current_path(error).string(), ")"));
}

CommandSearch SearchOf(const WorkerOptions& options, const std::string& server) {
  return {.served = options.studies,
          .server = server,
          .connect_timeout = options.connect_timeout,
          .stay = options.stay,
          .max_idle = options.max_idle};
}

// The worker's end, where a wait for studies (study_command.h) has ended without one: by a signal,
// by --max-idle, or since no server answers.
std::optional<AgentResult> EndOfWait(const absl::Status& status, const StopSignal& stop) {
  if (absl::IsCancelled(status)) return StoppedAtStart(stop.level());
  if (absl::IsUnavailable(status)) return AgentResult{ExitCode::kTryAgain, status};
  if (!absl::IsDeadlineExceeded(status)) return std::nullopt;
  spdlog::info("{}", std::string(status.message()));
  return AgentResult{ExitCode::kDone, absl::OkStatus()};
}

// With the program of the study that it serves, where that names one; the worker's end, where the
// studies have ended or no server answers.
std::variant<WorkerOptions, AgentResult> WithStudysCommand(WorkerOptions options,
                                                           CoordinatorClient& client,
                                                           StopSignal& stop) {
  if (!options.allow_commands) return options;
  const absl::StatusOr<FoundCommand> found =
      FindStudyCommand(client, SearchOf(options, options.server), PausesAtStart(), stop);
  if (const auto end = EndOfWait(found.status(), stop)) return *end;
  if (!found.ok()) return AgentResult{ExitCode::kConfiguration, found.status()};
  if (!found->ended.empty()) return EndOfStudies(found->ended);
  if (!found->command) return options;
  if (const absl::Status there = CheckWorkdir(*found->command); !there.ok()) {
    return AgentResult{ExitCode::kConfiguration, there};
  }
  spdlog::info("serves study {} alone, and runs the program that study {} names: {}",
               found->command->study, found->command->study, found->command->command);
  if (found->command->gpus != options.gpus_per_trial.value_or(1)) {
    spdlog::warn(
        "study {} trains each trial on {} GPUs (trainer.gpus), and this worker's take {}: it gets "
        "none of them",
        found->command->study, found->command->gpus, options.gpus_per_trial.value_or(1));
  }
  options.trainer = found->command->command;
  options.studies = {found->command->study};
  return options;
}

AgentOptions OptionsOfAgent(const WorkerOptions& options, const Device& device,
                            const OwnState& own) {
  const std::string& state = own.folder.path;
  AgentOptions agent;
  agent.worker = own.name;
  agent.version = WorkerVersion();
  agent.device = device.trainer_device;
  agent.gpus = device.gpus;
  agent.instance_file = state + "/instance";
  agent.runs_folder = state + "/runs";
  agent.server = options.server;
  agent.studies = options.studies;
  agent.own_trainer = !options.trainer.empty();
  if (options.IsPlainProgram()) {
    agent.command = {.option = options.allow_commands ? "trainer.command" : "--trainer",
                     .text = options.trainer,
                     .metrics_file = options.metrics_file};
  }
  agent.max_trials = options.max_trials;
  agent.stay = options.stay;
  agent.max_idle = options.max_idle;
  agent.num_kept_models = options.num_kept_models;
  if (options.keep_all_models) agent.num_kept_models.reset();
  agent.checkpoints = options.checkpoints;
  agent.connect_timeout = options.connect_timeout;
  if (options.stop_grace) {
    agent.attempt.stop_grace = *options.stop_grace;
    agent.attempt.longest_stop_grace = *options.stop_grace;
  }
  return agent;
}

// What dry runs of configurations take.
struct OwnDryRuns {
  OwnDryRuns(std::unique_ptr<CoordinatorClient> connected, std::unique_ptr<DryRunner> made,
             PreflightAbility ability)
      : client(std::move(connected)),
        runner(std::move(made)),
        services{.client = *client, .runner = *runner, .ability = ability} {}

  const std::unique_ptr<CoordinatorClient> client;
  const std::unique_ptr<DryRunner> runner;
  PreflightServices services;
};

DryRunOptions OptionsOfDryRuns(const WorkerOptions& options, const Device& device,
                               const std::string& state) {
  DryRunOptions dry_runs{
      .program = DryRunCommand(/*caller=*/""),
      .command = options.trainer,
      .environment = device.trainer_environment,
      // Absolute: the program may run in another folder.
      .folder = fs::absolute(state).string() + "/preflight",
      .lock = absl::StrCat(options.state_dir, "/preflight-", HostName(), ".lock"),
      .has_checkpoints = !options.checkpoints.root.empty(),
      .threads = options.preflight_threads,
      .timeout = options.preflight_timeout};
  RemoveDryRun(dry_runs.folder);
  dry_runs.mark = RenewTrainerMark(state, "preflight_mark");
  return dry_runs;
}

// Why this worker makes no dry runs; OK where it does.
absl::Status CheckDryRuns(const WorkerOptions& options, const DeviceProfile& device,
                          const std::vector<std::string>& program, const std::string& state) {
  HPO_RETURN_IF_ERROR(
      CheckNeeds({.is_plain_program = !options.trainer.empty() && options.IsPlainProgram(),
                  .plans = command::CommandTemplate(options.trainer).Has("micro_batch"),
                  .device = device,
                  .gpus = options.gpus_per_trial.value_or(1)}));
  return CheckDryRunPackage(program, device, state);
}

// nullptr where there are none, and the log says why.
//   InvalidArgument  --preflight was given
absl::StatusOr<std::unique_ptr<OwnDryRuns>> MakeDryRuns(
    const WorkerOptions& options, const tls::ServerRoute& route, const Device& device,
    const std::string& state, const ModelCatalog& models, const DataCatalog& data) {
  if (options.preflight == PreflightWish::kNever) return nullptr;
  const bool always = options.preflight == PreflightWish::kAlways;
  const absl::StatusOr<DeviceProfile> profile = device.capacity->Profile();
  // A GPU that does not answer now is waited for later.
  if (!profile.ok()) return nullptr;
  DryRunOptions dry_runs = OptionsOfDryRuns(options, device, state);
  const absl::Status able = CheckDryRuns(options, *profile, dry_runs.program, state);
  if (!able.ok() && always) {
    return absl::InvalidArgumentError(absl::StrCat("--preflight: ", able.message()));
  }
  if (!able.ok()) {
    const bool is_program = !options.trainer.empty();
    spdlog::log(is_program ? spdlog::level::info : spdlog::level::debug,
                "configurations are not dry-run here (memory.preflight): {}",
                std::string(able.message()));
    return nullptr;
  }
  return std::make_unique<OwnDryRuns>(
      ConnectCoordinator(route),
      std::make_unique<ProcessDryRunner>(std::move(dry_runs), *profile, models, data),
      always ? PreflightAbility::kAlways : PreflightAbility::kIfAsked);
}

// Whether the server does not let this worker in, and will not with the same join string.
bool IsRefused(const tls::ServerRoute& route) {
  const absl::Status trouble = route.Trouble();
  return !trouble.ok() && !tls::MayWorkLater(trouble);
}

absl::StatusOr<AgentResult> RunOn(const tls::ServerRoute& route, WorkerOptions given, Device device,
                                  StopSignal& stop) {
  given.server = route.shown;
  const std::unique_ptr<CoordinatorClient> client = ConnectCoordinator(route);
  const std::variant<WorkerOptions, AgentResult> with_command =
      WithStudysCommand(given, *client, stop);
  if (const auto* end = std::get_if<AgentResult>(&with_command)) return *end;
  const auto& options = std::get<WorkerOptions>(with_command);
  absl::StatusOr<OwnState> own = WaitForState(options, device.card_uuid, stop);
  if (absl::IsCancelled(own.status())) return StoppedAtStart(stop.level());
  HPO_RETURN_IF_ERROR(own.status());
  const std::string& state = own->folder.path;
  // Before the device is used.
  const std::string mark = RenewTrainerMark(state);
  HPO_ASSIGN_OR_RETURN(ModelCatalog models, ScanModels(options.models));
  for (const std::string& warning : models.warnings) {
    spdlog::warn("{}", warning);
  }
  DataCatalog data({.folder = options.data,
                    .train_file = options.train,
                    .validation_file = options.validation,
                    .cache_folder = state + "/data_facts",
                    .require_text_rows = options.trainer.empty(),
                    .stopped = [&stop] { return stop.raised(); }});
  const std::unique_ptr<TrainerLauncher> launcher = MakeLauncher(options, device, mark);
  std::optional<DeviceProfiles> profiles = MakeProfiles(options, device, state);
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<OwnDryRuns> dry_runs,
                       MakeDryRuns(options, route, device, state, models, data));
  const std::unique_ptr<CoordinatorClient> heartbeats = ConnectCoordinator(route);
  const AgentServices services{.client = *client,
                               .heartbeat_client = *heartbeats,
                               .launcher = *launcher,
                               .capacity = *device.capacity,
                               .data = data,
                               .models = models,
                               .outbox = own->outbox,
                               .stop = stop,
                               .is_refused = [&route] { return IsRefused(route); },
                               .count_oom_kills = CountOomKills,
                               .device_profiles = profiles.has_value() ? &*profiles : nullptr,
                               .preflight = dry_runs == nullptr ? nullptr : &dry_runs->services};
  const AgentOptions agent = OptionsOfAgent(options, device, *own);
  TrainerSlotOptions slot;
  slot.log_path = state + "/trainer.log";
  slot.is_own_program = !options.trainer.empty() && !options.IsPlainProgram();
  return RunAgent(services, agent, slot);
}

// What TLS says of the server ends the worker where waiting does not help.
void NoteServer(const absl::Status& status, StopSignal& stop) {
  if (status.ok()) return;
  if (tls::MayWorkLater(status)) {
    spdlog::warn("{}", std::string(status.message()));
    return;
  }
  spdlog::error("{}; the worker ends", std::string(status.message()));
  if (!stop.raised()) stop.Raise();
}

// The way to the server, after a first look at it where it has TLS.
//   PermissionDenied, Unauthenticated  it does not let this worker in
absl::StatusOr<tls::ServerRoute> FindServer(const WorkerOptions& options, StopSignal& stop) {
  HPO_ASSIGN_OR_RETURN(tls::ServerRoute route, tls::FindRoute(options.join, options.server,
                                                              [&stop](const absl::Status& status) {
                                                                NoteServer(status, stop);
                                                              }));
  if (route.forwarder == nullptr) {
    if (tls::SpeaksTls(route.dialed)) return tls::NeedsJoinString(route.shown);
    return route;
  }
  const absl::Status first = route.forwarder->Check();
  if (!first.ok() && !tls::MayWorkLater(first)) return first;
  return route;
}

absl::StatusOr<AgentResult> RunWorker(const WorkerOptions& options, Device device,
                                      StopSignal& stop) {
  HPO_ASSIGN_OR_RETURN(const tls::ServerRoute route, FindServer(options, stop));
  // Programs of trials have no use for it.
  for (const char* variable : {"HPO_JOIN", "HPO_JOIN_FILE"}) ::unsetenv(variable);
  HPO_ASSIGN_OR_RETURN(AgentResult result, RunOn(route, options, std::move(device), stop));
  if (IsRefused(route)) result.code = ExitCode::kConfiguration;
  return result;
}

// How long this worker may run from its start, `began`, on; and when it has to begin to end.
void SetTimeLimit(const WorkerOptions& options, absl::Duration began, StopSignal& stop) {
  absl::Duration limit = options.time_limit;
  if (limit == absl::InfiniteDuration()) {
    const SystemClock clock;
    const absl::Duration started_ago = clock.Monotonic() - began;
    const std::optional<absl::Duration> left = EngineTimeLeft(OwnVariable, clock.Now());
    if (left) limit = started_ago + *left;
    if (left && limit < absl::InfiniteDuration()) {
      spdlog::info("Slurm ends this job in {}",
                   absl::FormatDuration(absl::Trunc(*left, absl::Seconds(1))));
    }
  }
  stop.SetTimeLimit(began, limit);
}

// Where --gpus-per-trial does not say it, the studies that the worker is to serve do.
absl::Status DecideGpusPerTrial(size_t num_gpus, StopSignal& stop, WorkerOptions& options) {
  if (options.gpus_per_trial.has_value()) return absl::OkStatus();
  options.gpus_per_trial = 1;
  if (num_gpus == 1 || !options.HasProgram()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const tls::ServerRoute route, FindServer(options, stop));
  HPO_ASSIGN_OR_RETURN(const int64_t wanted,
                       FindGpusPerTrial(*ConnectCoordinator(route), SearchOf(options, route.shown),
                                        PausesAtStart(), stop));
  options.gpus_per_trial = static_cast<int>(wanted);
  return absl::OkStatus();
}

// The sets of GPUs: each is one worker's.
absl::StatusOr<std::vector<std::vector<GpuState>>> DivideGpus(const ChosenGpus& chosen,
                                                              int per_trial) {
  HPO_ASSIGN_OR_RETURN(std::vector<std::vector<GpuState>> sets, SetsOfGpus(chosen.gpus, per_trial));
  const size_t num_unused = chosen.gpus.size() % static_cast<size_t>(per_trial);
  if (num_unused > 0) {
    spdlog::warn("{} of {} GPUs are not used, as each trial takes {}", num_unused,
                 chosen.gpus.size(), per_trial);
  }
  return sets;
}

absl::StatusOr<AgentResult> RunOnGpus(WorkerOptions options,
                                      const std::vector<std::string>& arguments,
                                      absl::Duration began, StopSignal& stop) {
  HPO_RETURN_IF_ERROR(CheckAllocatorVariables(options));
  HPO_ASSIGN_OR_RETURN(ChosenGpus chosen, ChooseGpus(options));
  SetTimeLimit(options, began, stop);
  const absl::Status decided = DecideGpusPerTrial(chosen.gpus.size(), stop, options);
  if (auto end = EndOfWait(decided, stop)) return *std::move(end);
  HPO_RETURN_IF_ERROR(decided);
  HPO_ASSIGN_OR_RETURN(const auto sets, DivideGpus(chosen, *options.gpus_per_trial));
  if (sets.size() == 1) {
    if (options.name_of_fleet) options.name += SuffixOf(sets.front(), chosen.visible);
    return RunWorker(options, GpuDevice(std::move(chosen.probe), sets.front(), options), stop);
  }
  std::vector<std::vector<std::string>> workers;
  for (const std::vector<GpuState>& set : sets) {
    const std::string name =
        options.name.empty() ? "" : absl::StrCat(options.name, SuffixOf(set, chosen.visible));
    workers.push_back(GpuArguments(arguments, set, name));
    workers.back().push_back(absl::StrCat("--gpus-per-trial=", *options.gpus_per_trial));
  }
  chosen.probe.reset();
  // Each watches its own time.
  stop.SetTimeLimit(began, absl::InfiniteDuration());
  return AgentResult{RunFleet(BesideThisProgram("hpo-worker"), workers, stop), absl::OkStatus()};
}

// Programs of the user's own go by OMP_NUM_THREADS, where they go by anything.
void ShareProcessors(const WorkerOptions& options) {
  const int num_processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::string share = std::to_string(std::max(1, num_processors / options.num_workers));
  for (const char* variable : {"HPO_NUM_THREADS", "OMP_NUM_THREADS"}) {
    ::setenv(variable, share.c_str(), /*overwrite=*/0);
  }
}

absl::StatusOr<AgentResult> RunCpuWorkers(const WorkerOptions& options,
                                          const std::vector<std::string>& arguments,
                                          StopSignal& stop) {
  std::string name = options.name;
  if (name.empty()) {
    HPO_ASSIGN_OR_RETURN(name, DefaultWorkerName(HostName(), /*card_uuid=*/"", options.state_dir));
  }
  ShareProcessors(options);
  std::vector<std::vector<std::string>> workers;
  for (int i = 1; i <= options.num_workers; ++i) {
    workers.push_back(CpuArguments(arguments, name, i));
  }
  return AgentResult{RunFleet(BesideThisProgram("hpo-worker"), workers, stop), absl::OkStatus()};
}

absl::StatusOr<AgentResult> RunChosen(WorkerOptions options,
                                      const std::vector<std::string>& arguments,
                                      absl::Duration began, StopSignal& stop) {
  if (options.name.empty()) {
    options.name = EngineWorkerName(OwnVariable, HostName());
    options.name_of_fleet = !options.name.empty();
  }
  if (!options.cpu) return RunOnGpus(std::move(options), arguments, began, stop);
  if (options.num_workers > 1) return RunCpuWorkers(options, arguments, stop);
  SetTimeLimit(options, began, stop);
  return RunWorker(options, CpuDevice(*options.memory_limit), stop);
}

// A fleet's workers take the join string from the environment, which other users cannot read.
std::vector<std::string> ArgumentsOfFleet(const WorkerOptions& options,
                                          std::vector<std::string> arguments) {
  const auto join = std::find_if(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word == "--join" || absl::StartsWith(word, "--join=");
  });
  if (!options.join || join == arguments.end()) return arguments;
  const bool has_value = join->find('=') == std::string::npos;
  const absl::StatusOr<tls::JoinString> read = options.join->Read();
  if (options.join->file().empty() && read.ok()) {
    ::setenv("HPO_JOIN", tls::FormatJoinString(*read).c_str(), /*overwrite=*/1);
  } else {
    ::unsetenv("HPO_JOIN");
    ::setenv("HPO_JOIN_FILE", options.join->file().c_str(), /*overwrite=*/1);
  }
  arguments.erase(join, join + (has_value ? 2 : 1));
  return arguments;
}

int Main(int argc, char** argv) {
  OpenStandardStreams();
  const tls::PrivateArguments words(argc, argv);
  const std::variant<WorkerOptions, int> read =
      ReadWorkerOptions(words.count(), words.data(), std::cout, std::cerr);
  if (const int* status = std::get_if<int>(&read)) return *status;
  const auto& options = std::get<WorkerOptions>(read);

  if (options.threads) {
    ::setenv("HPO_NUM_THREADS", std::to_string(*options.threads).c_str(), /*overwrite=*/1);
  }
  StopSignal stop;
  const SystemClock clock;
  const absl::Duration began = clock.Monotonic();
  const SignalWatcher signals(stop, clock);
  const absl::StatusOr<AgentResult> result = RunChosen(
      options, ArgumentsOfFleet(options, {words.data() + 1, words.data() + words.count()}), began,
      stop);
  const absl::Status& why = result.ok() ? result->status : result.status();
  if (!why.ok()) {
    spdlog::error("{}", std::string(why.message()));
  }
  if (result.ok()) return static_cast<int>(result->code);
  return static_cast<int>(absl::IsAlreadyExists(why) ? ExitCode::kNameTaken
                                                     : ExitCode::kConfiguration);
}

}  // namespace
}  // namespace hpo::agent

int main(int argc, char** argv) { return hpo::agent::Main(argc, argv); }
