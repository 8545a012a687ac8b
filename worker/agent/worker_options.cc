#include "worker/agent/worker_options.h"

#include <filesystem>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/command_line/bounds.h"
#include "common/command_line/command_line.h"
#include "common/command_line/server_address.h"
#include "common/files/user_folder.h"
#include "common/study/study.h"
#include "memory/allocator/allocator_settings.h"
#include "worker/agent/loop/agent_loop.h"
#include "worker/command/command_template.h"
#include "worker/command/metric_reader.h"
#include "worker/command/program_files.h"

namespace hpo::agent {
namespace {

constexpr char kDescription[] =
    "Runs the trials of an hpo-server on one device, one at a time, and reports their results.\n"
    "\n"
    "  hpo-worker --models ~/models --data ~/data\n"
    "  hpo-worker --device cpu --memory-limit 2GiB\n"
    "  hpo-worker --gpu 0 --trainer \"python3 train.py --lr {train.lr}\" --study mine\n"
    "  hpo-worker --gpu 0 --study mine --allow-commands\n"
    "  hpo-worker --join hpo1....@host:50051      a server on another machine\n";

constexpr char kFooter[] =
    "\n"
    "On SIGTERM, SIGINT, SIGUSR1 or SIGUSR2, the worker saves a checkpoint, requeues its trial "
    "and\n"
    "ends. A second signal, at least one second later, kills the trainer. Results that the server\n"
    "has not received yet are kept in --state-dir.\n"
    "\n"
    "Exit status:\n"
    "   0  Every study is finished, --max-trials or --max-idle is reached, hpo worker drain ended\n"
    "      it, or no work was left at a signal.\n"
    "   7  The worker served one study, and too many failed trials ended it.\n"
    "   8  The worker has the data of no running study. Its log says what is wrong with the "
    "files.\n"
    "  70  An internal error occurred. Start the worker again, but limit the number of retries.\n"
    "  75  A signal or --time-limit ended the worker while work remains, or no server answered.\n"
    "      Start it again.\n"
    "  77  The trainer could not be started three times in a row. Do not use this machine.\n"
    "  78  The options, files, command or join string of the worker are wrong, and its message\n"
    "      says which.\n"
    "      Starting the worker again does not help.\n"
    "  79  Another running worker has the same name. Choose a different --name.\n"
    " 130  A second signal killed the worker.";

std::string DefaultModels() {
  const std::string folder = UserFolder("XDG_CACHE_HOME", ".cache") + "/hpo/models";
  std::error_code error;
  return std::filesystem::is_directory(folder, error) ? folder : "";
}

// The server counts capacities in units of this.
constexpr Bytes kSmallestMemoryLimit = MiB(1);

// Text of the options that need a conversion of ours.
struct RawOptions {
  std::string join;
  std::string gpu;
  std::string device;
  std::string memory_limit;
  std::string connect_timeout = "5m";
  std::optional<std::string> checkpoints;
  std::string checkpoint_every = "10m";
  std::string checkpoint_quota;
  std::string time_limit;
  std::string stop_grace;
  std::string max_idle;
  bool preflight = false;
  bool no_preflight = false;
  std::string preflight_timeout = "120s";
};

void DeclareCheckpoints(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  app.add_option(
         "--checkpoints", raw.checkpoints,
         "Folder for checkpoints, or none. If several machines share the folder, each of them can "
         "continue any trial [default: checkpoints in --state-dir]")
      ->envname("HPO_CHECKPOINT_DIR");
  app.add_option("--checkpoint-every", raw.checkpoint_every,
                 "Time between two checkpoints of a trial, such as 10m; 0 saves by steps alone")
      ->capture_default_str();
  app.add_option("--checkpoint-every-steps", options.checkpoints.every_steps,
                 "Number of optimizer steps between two checkpoints; 0 saves by time alone")
      ->check(AtLeast(0))
      ->capture_default_str();
  app.add_option("--checkpoint-quota", raw.checkpoint_quota,
                 "Maximum size of one study's checkpoints, such as 50GiB [default: no limit]");
}

void DeclareTrainer(CLI::App& app, WorkerOptions& options) {
  CLI::Option* const trainer = app.add_option(
      "--trainer", options.trainer,
      "Command for /bin/sh that runs your own training program, with placeholders such as "
      "{train.lr} or {args}. Without placeholders, the program must read HPO_PARAMS from its "
      "environment or speak the trainer protocol (docs/TRAINER_PROTOCOL.md) [default: hpo-trainer, "
      "beside this program]");
  app.add_flag(
         "--allow-commands", options.allow_commands,
         "Run the command that the study names (trainer.command). The worker then serves this "
         "study alone. Everybody who can create a study can run any program on this machine")
      ->excludes(trainer);
  app.add_option(
         "--metric-pattern", options.metric_patterns,
         "Regular expression that finds the objective in a line that the program prints, such "
         "as 'acc: (\\S+)'; (?P<loss>...) finds the metric loss (repeatable)")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  app.add_option("--metrics-file", options.metrics_file,
                 "JSON file in which the program writes its metrics, such as "
                 "{output_dir}/metrics.json [default: the lines of JSON that it prints]")
      ->type_name("PATH");
}

void DeclarePreflight(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  CLI::Option* const always = app.add_flag(
      "--preflight", raw.preflight,
      "Measure the required memory of each configuration by a dry run on an emulated GPU, before "
      "the GPU runs it, where it is not known to fit; for PyTorch programs of your own [default: "
      "for studies that ask for it, memory.preflight]");
  app.add_flag("--no-preflight", raw.no_preflight, "Make no dry runs, also where a study asks")
      ->excludes(always);
  app.add_option("--preflight-threads", options.preflight_threads,
                 "Number of threads that torch computes with in a dry run, at a low priority")
      ->type_name("N")
      ->check(Between(1, 1024))
      ->capture_default_str();
  app.add_option("--preflight-timeout", raw.preflight_timeout,
                 "Longest time of a dry run, such as 120s or 5m")
      ->capture_default_str();
}

void DeclareDevice(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  app.add_option(
         "--gpu", raw.gpu,
         "visible: one worker for each GPU that CUDA_VISIBLE_DEVICES lists, or for each GPU "
         "if it is not set; or one GPU: its place in that list, or else its number in "
         "nvidia-smi; its UUID or MIG UUID, or the beginning of it; or several with commas "
         "between [default: visible]")
      ->type_name("GPU")
      ->take_last();
  app.add_option(
         "--gpus-per-trial", options.gpus_per_trial,
         "Number of GPUs that each trial takes: one worker for each set of that many GPUs, in "
         "their order; for programs of your own, such as torchrun "
         "[default: trainer.gpus of the study]")
      ->type_name("N")
      ->check(Between(1, kMostGpus))
      ->take_last();
  app.add_option("--device", raw.device, "Device to use: cpu, or cuda for the visible GPUs")
      ->check(OneOf({"cpu", "cuda"}));
  app.add_option("--memory-limit", raw.memory_limit,
                 "Memory limit of a trial, such as 2GiB; required with --device cpu");
  app.add_option(
         "--workers", options.num_workers,
         "Number of workers on the CPU. Each runs one trial at a time, with --memory-limit for "
         "itself and its share of the processors")
      ->type_name("N")
      ->check(Between(1, 1024))
      ->take_last()
      ->capture_default_str();
}

void DeclareEnd(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  app.add_option("--max-trials", options.max_trials, "End after this number of results")
      ->check(AtLeast(1));
  app.add_option(
      "--time-limit", raw.time_limit,
      "End within this time, such as 8h; the running trial is saved and requeued before [default: "
      "what Slurm leaves the job]");
  app.add_option(
      "--stop-grace", raw.stop_grace,
      "Time that a trainer has to save and end when it is told to, such as 5m [default: 30s, or "
      "what the trainer asks for, at most 1h]");
  app.add_flag("--stay", options.stay, "Wait for new studies when every study is finished");
  app.add_option("--max-idle", raw.max_idle,
                 "End after this time without a trial, such as 10m, so that the GPU is free for "
                 "others [default: wait as long as a study runs]");
}

void DeclareServer(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  app.add_option("--server", options.server,
                 "Address of the server: HOST[:PORT] or unix:PATH; the default port is 50051")
      ->check(ServerAddress())
      ->envname("HPO_SERVER")
      ->capture_default_str();
  app.add_option("--join", raw.join,
                 "Join string of a server on another machine, which the server has printed, or "
                 "file:PATH of a file with it [default: HPO_JOIN, or the file HPO_JOIN_FILE]")
      ->type_name("JOIN")
      ->check(NotEmpty("a join string"));
}

void Declare(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  DeclareDevice(app, options, raw);
  DeclareServer(app, options, raw);
  app.add_option(
         "--study", options.studies,
         "Serve only this study (repeatable) [default: every study; with --trainer the only "
         "study of the server]")
      ->type_name("NAME");
  app.add_option("--models", options.models,
                 "Folder that contains a Hugging Face folder for each model [default: "
                 "~/.cache/hpo/models, if it exists]")
      ->envname("HPO_MODEL_DIR");
  app.add_option("--data", options.data, "Folder of the data files that studies name")
      ->envname("HPO_DATA_DIR")
      ->capture_default_str();
  app.add_option("--train", options.train, "Training file to use for every study")
      ->check(CLI::ExistingFile);
  app.add_option("--validation", options.validation, "Validation file to use for every study")
      ->check(CLI::ExistingFile);
  DeclareTrainer(app, options);
  app.add_option(
         "--threads", options.threads,
         "Number of CPU threads of the trainer [default: HPO_NUM_THREADS, or all processors]")
      ->check(AtLeast(1));
  app.add_option("--allocator", options.allocator,
                 "Configuration of torch's GPU allocator, as in PYTORCH_ALLOC_CONF, such as "
                 "expandable_segments:True,max_split_size_mb:128");
  app.add_option(
         "--state-dir", options.state_dir,
         "Folder for logs, trained models, and results that the server has not received yet")
      ->capture_default_str();
  app.add_option("--name", options.name,
                 "Name of this worker [default: that of its place in a Slurm, Kubernetes or "
                 "SkyPilot job, else HOST:GPU-... or HOST:cpu-...]")
      ->envname("HPO_WORKER_NAME")
      ->take_last();
  CLI::Option* const num_kept =
      app.add_option("--keep-models", options.num_kept_models,
                     "Number of trained models to keep per study in --state-dir: the best ones")
          ->check(AtLeast(1))
          ->capture_default_str();
  app.add_flag("--keep-all-models", options.keep_all_models,
               "Keep the trained model of every completed trial in --state-dir")
      ->excludes(num_kept);
  DeclareCheckpoints(app, options, raw);
  DeclarePreflight(app, options, raw);
  DeclareEnd(app, options, raw);
  app.add_option("--connect-timeout", raw.connect_timeout,
                 "Time to wait for the server at the start, such as 30s or 5m")
      ->capture_default_str();
  app.add_option("--log-level", options.log_level,
                 "Lowest level of log lines: trace, debug, info, warn, error or off")
      ->envname("HPO_LOG_LEVEL")
      ->capture_default_str();
  app.add_flag("--log-json", options.log_json, "Write each log line as a JSON object");
  app.set_version_flag("--version", std::string("hpo-worker ") + WorkerVersion());
}

absl::Status ConvertDuration(absl::string_view option, const std::string& text,
                             absl::Duration& duration) {
  if (absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": expected a duration such as 30s or 5m, got '", text, "'"));
}

absl::Status ConvertTrainer(WorkerOptions& options) {
  const bool says_metrics = !options.metric_patterns.empty() || !options.metrics_file.empty();
  if (says_metrics && !options.HasProgram()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.metrics_file.empty() ? "--metric-pattern" : "--metrics-file",
                     ": expected --trainer \"COMMAND\" too, whose metrics it finds"));
  }
  for (const std::string& text : options.metric_patterns) {
    HPO_RETURN_IF_ERROR(command::ParseMetricPattern(text).status());
  }
  return absl::OkStatus();
}

absl::Status ConvertPreflight(const RawOptions& raw, WorkerOptions& options) {
  if (raw.preflight) options.preflight = PreflightWish::kAlways;
  if (raw.no_preflight) options.preflight = PreflightWish::kNever;
  HPO_RETURN_IF_ERROR(
      ConvertDuration("--preflight-timeout", raw.preflight_timeout, options.preflight_timeout));
  if (options.preflight_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--preflight-timeout: expected more than 0s, got " +
                                      raw.preflight_timeout);
  }
  return absl::OkStatus();
}

// --server beats the environment's join string.
absl::Status ConvertJoin(const RawOptions& raw, bool names_server, WorkerOptions& options) {
  if (names_server && !raw.join.empty()) {
    return absl::InvalidArgumentError("--join and --server: expected one of the two, got both");
  }
  if (names_server) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(options.join, tls::JoinSource::Find(raw.join));
  return absl::OkStatus();
}

absl::Status Convert(const RawOptions& raw, WorkerOptions& options) {
  HPO_RETURN_IF_ERROR(ConvertTrainer(options));
  HPO_RETURN_IF_ERROR(ConvertPreflight(raw, options));
  options.cpu = raw.device == "cpu";
  HPO_RETURN_IF_ERROR(
      ConvertDuration("--connect-timeout", raw.connect_timeout, options.connect_timeout));
  options.checkpoints.root = raw.checkpoints.value_or(options.state_dir + "/checkpoints");
  if (options.checkpoints.root == "none") options.checkpoints.root.clear();
  HPO_RETURN_IF_ERROR(
      ConvertDuration("--checkpoint-every", raw.checkpoint_every, options.checkpoints.every));
  if (!raw.time_limit.empty()) {
    HPO_RETURN_IF_ERROR(ConvertDuration("--time-limit", raw.time_limit, options.time_limit));
  }
  if (!raw.stop_grace.empty()) {
    HPO_RETURN_IF_ERROR(
        ConvertDuration("--stop-grace", raw.stop_grace, options.stop_grace.emplace()));
  }
  if (!raw.max_idle.empty()) {
    HPO_RETURN_IF_ERROR(ConvertDuration("--max-idle", raw.max_idle, options.max_idle.emplace()));
  }
  if (!raw.checkpoint_quota.empty()) {
    const absl::StatusOr<Bytes> quota = ParseBytes(raw.checkpoint_quota);
    if (!quota.ok()) return Annotate(quota.status(), "--checkpoint-quota");
    options.checkpoints.quota = *quota;
  }
  if (!raw.gpu.empty()) options.gpu = raw.gpu;
  if (options.cpu && !raw.gpu.empty()) {
    return absl::InvalidArgumentError("--gpu and --device cpu: expected one of the two, got both");
  }
  if (options.gpus_per_trial && options.cpu) {
    return absl::InvalidArgumentError(
        "--gpus-per-trial and --device cpu: expected one of the two, got both");
  }
  if (options.gpus_per_trial.value_or(1) > 1 && !options.HasProgram()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpus-per-trial ", *options.gpus_per_trial,
        ": expected --allow-commands or --trainer too; hpo-trainer trains on one GPU"));
  }
  if (options.num_workers > 1 && !options.cpu) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--workers: expected --device cpu too, got ", options.num_workers,
        " workers without it; a GPU has one worker, and --gpu visible runs one for each GPU"));
  }
  if (!options.allocator.empty()) {
    const absl::StatusOr<memory::AllocatorOptions> allocator =
        memory::ParseAllocatorSettings(options.allocator);
    if (!allocator.ok()) return Annotate(allocator.status(), "--allocator");
    if (options.cpu) {
      return absl::InvalidArgumentError(
          "--allocator: expected a card, got --device cpu, whose memory has no such allocator");
    }
    options.allocator = memory::FormatAllocatorSettings(*allocator);
  }
  if (!raw.memory_limit.empty()) {
    const absl::StatusOr<Bytes> limit = ParseBytes(raw.memory_limit);
    if (!limit.ok()) return Annotate(limit.status(), "--memory-limit");
    options.memory_limit = *limit;
  }
  if (options.memory_limit && *options.memory_limit < kSmallestMemoryLimit) {
    return absl::InvalidArgumentError(absl::StrCat("--memory-limit: expected at least ",
                                                   FormatBytes(kSmallestMemoryLimit), ", got ",
                                                   FormatBytes(*options.memory_limit)));
  }
  if (options.cpu && !options.memory_limit) {
    return absl::InvalidArgumentError(
        "--device cpu: expected --memory-limit SIZE too, such as --memory-limit 2GiB");
  }
  return absl::OkStatus();
}

}  // namespace

bool WorkerOptions::IsPlainProgram() const {
  return !metric_patterns.empty() || !metrics_file.empty() ||
         command::CommandTemplate(trainer).HasPlaces() || command::ReadsParamVariables(trainer);
}

const char* WorkerVersion() { return HPO_VERSION; }

std::variant<WorkerOptions, int> ReadWorkerOptions(int argc, const char* const* argv,
                                                   std::ostream& out, std::ostream& err) {
  constexpr int kConfigurationError = static_cast<int>(ExitCode::kConfiguration);
  WorkerOptions options;
  options.server = "127.0.0.1:50051";
  options.models = DefaultModels();
  options.data = ".";
  const std::string state = UserFolder("XDG_STATE_HOME", ".local/state");
  if (!state.empty()) options.state_dir = state + "/hpo/worker";
  RawOptions raw;
  CLI::App app(kDescription, "hpo-worker");
  app.footer(kFooter);
  Declare(app, options, raw);
  if (const std::optional<int> over = ParseCommandLine(app, argc, argv, out, err)) {
    return *over == 0 ? 0 : kConfigurationError;
  }
  options.server = WithDefaultPort(options.server);
  absl::Status valid = ConvertJoin(raw, NamesOption("--server", argc, argv), options);
  if (valid.ok()) valid = Convert(raw, options);
  if (valid.ok() && options.state_dir.empty()) {
    valid = absl::InvalidArgumentError(
        "--state-dir: expected a folder, as neither XDG_STATE_HOME nor HOME is set");
  }
  if (valid.ok()) valid = InitLog(options.log_level, options.log_json);
  if (valid.ok()) return options;
  err << "hpo-worker: " << valid.message() << "\n";
  return kConfigurationError;
}

}  // namespace hpo::agent
