// hpo-trainer: trains one trial after another for a supervisor, or one job of a file; or turns
// texts into token ids (tokenize).
#include <ATen/Parallel.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/command_line/bounds.h"
#include "common/device/processors.h"
#include "common/files/read_file.h"
#include "common/files/user_folder.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_facts.h"
#include "nlohmann/json.hpp"
#include "worker/channel/message_channel.h"
#include "worker/text/batching/token_cache.h"
#include "worker/text/batching/tokenize_lines.h"
#include "worker/text/tokenizers/make_tokenizer.h"
#include "worker/text/tokenizers/pipeline/tokenizer.h"
#include "worker/trainer/base/torch_version.h"
#include "worker/trainer/data/training_options.h"
#include "worker/trainer/device/trial_device.h"
#include "worker/trainer/memory/error_text.h"
#include "worker/trainer/program/run_trial.h"
#include "worker/trainer/suite/device_profile.h"
#include "worker/trainer/suite/memory_suite.h"

namespace hpo::trainer {
namespace {

struct Arguments {
  std::string tokenize_folder;
  std::string job_path;
  bool list_parameters = false;
  bool profile_device = false;
  std::string memory_suite;  // folder for traces
  int storm_cycles = 100;
  int suite_seconds = 420;
  std::string device = "cpu";  // of the two above
  int threads = 0;
  std::optional<std::string> token_cache;  // folder, or none
  std::string token_cache_size = "10GiB";
  std::string log_level = "info";
  bool log_json = false;
};

int Fail(int status, const absl::Status& error) {
  std::fprintf(stderr, "hpo-trainer: %s\n", std::string(error.message()).c_str());
  return status;
}

// Messages as lines on standard output, and nobody to stop the attempt.
class StandardOutput final : public EventSink, public StopSource {
 public:
  void Send(const UpMessage& message) override {
    std::cout << EncodeUp(message) << std::endl;  // flushed: people and pipes read along
  }
  std::optional<StopRequest> Poll() override { return std::nullopt; }
};

Hello MakeHello(const std::string& torch_build) {
  return {.version = kTrainerProtocolVersion,
          .program = absl::StrCat("hpo-trainer ", HPO_VERSION),
          .capabilities = {"plan", "stop", "memory", "reuse"},
          .torch_build = torch_build};
}

int StatusOf(FailureClass failure_class) {
  switch (failure_class) {
    case FailureClass::kBadData:
      return trainer_exit::kBadData;
    case FailureClass::kBadModel:
      return trainer_exit::kBadModel;
    case FailureClass::kBadConfiguration:
      return trainer_exit::kUsage;
    case FailureClass::kDiverged:
      return trainer_exit::kDiverged;
    default:
      return trainer_exit::kInternal;
  }
}

int StatusOf(const OutcomeMessage& message) {
  if (!message.outcome.has_value()) return trainer_exit::kCancelled;
  const TrialOutcome& outcome = *message.outcome;
  if (std::holds_alternative<StoppedByPruner>(outcome)) return trainer_exit::kPruned;
  if (std::holds_alternative<Cancelled>(outcome)) return trainer_exit::kCancelled;
  if (const auto* oom = std::get_if<OutOfMemory>(&outcome)) {
    return oom->kind == OomKind::kHost ? trainer_exit::kOutOfHostMemory
                                       : trainer_exit::kOutOfDeviceMemory;
  }
  if (const auto* failed = std::get_if<Failed>(&outcome)) return StatusOf(failed->failure_class);
  return trainer_exit::kDone;
}

// Ends the job and the process.
int EndWithoutDevice(const TrainerJob& job, const absl::Status& reason, EventSink& events) {
  const OutcomeMessage outcome = OutcomeWithoutDevice(job, reason);
  events.Send(outcome);
  const bool no_device = absl::IsFailedPrecondition(reason) || absl::IsInvalidArgument(reason);
  return Fail(no_device ? trainer_exit::kBadModel : StatusOf(outcome), reason);
}

absl::StatusOr<TrainerJob> ReadJob(const std::string& path) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<DownMessage> message = DecodeDown(text);
  if (!message.ok()) return Annotate(message.status(), path);
  if (auto* job = std::get_if<TrainerJob>(&*message)) return std::move(*job);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": type: expected \"job\", got another message of the protocol"));
}

int RunJobFile(const std::string& path, const std::string& torch_build,
               const text::TokenCache& tokens) {
  const absl::StatusOr<TrainerJob> job = ReadJob(path);
  if (!job.ok()) return Fail(trainer_exit::kUsage, job.status());
  StandardOutput output;
  output.Send(MakeHello(torch_build));
  absl::StatusOr<TrialDevice> device = OpenTrialDevice(job->device);
  if (!device.ok()) return EndWithoutDevice(*job, device.status(), output);
  const OutcomeMessage outcome = RunTrial(*job, *device, output, output, tokens);
  output.Send(outcome);
  if (outcome.outcome.has_value()) {
    if (const auto* failed = std::get_if<Failed>(&*outcome.outcome)) {
      return Fail(StatusOf(outcome), absl::InternalError(failed->message));
    }
  }
  return StatusOf(outcome);
}

// Jobs one after another until a shutdown or the end of the channel. The device of the first job is
// kept; a process serves one device.
int Serve(MessageChannel& channel, const std::string& torch_build, const text::TokenCache& tokens) {
  channel.Send(MakeHello(torch_build));
  std::optional<TrialDevice> device;
  std::string device_name;
  while (true) {
    const absl::StatusOr<TrainerJob> job = channel.NextJob();
    if (absl::IsCancelled(job.status())) return trainer_exit::kDone;
    if (!job.ok()) return Fail(trainer_exit::kUsage, job.status());
    if (!device.has_value() || device_name != job->device) {
      device.reset();
      absl::StatusOr<TrialDevice> opened = OpenTrialDevice(job->device);
      if (!opened.ok()) {
        return EndWithoutDevice(*job, opened.status(), channel);
      }
      device.emplace(*std::move(opened));
      device_name = job->device;
    }
    channel.Send(RunTrial(*job, *device, channel, channel, tokens));
  }
}

int Tokenize(const std::string& folder) {
  const absl::StatusOr<std::unique_ptr<text::Tokenizer>> tokenizer =
      text::MakeTokenizerOfFolder(folder);
  if (!tokenizer.ok()) return Fail(trainer_exit::kBadModel, tokenizer.status());
  std::ios::sync_with_stdio(false);
  const absl::Status done = text::TokenizeLines(**tokenizer, std::cin, std::cout);
  if (done.ok()) return trainer_exit::kDone;
  const bool bad_data = absl::IsInvalidArgument(done);
  return Fail(bad_data ? trainer_exit::kBadData : trainer_exit::kInternal, done);
}

int PrintProfile(const std::string& device, const std::string& torch_build) {
  const absl::StatusOr<DeviceProfile> profile = ProfileDevice(device, torch_build);
  if (!profile.ok()) return Fail(trainer_exit::kBadModel, profile.status());
  std::cout << DeviceProfileToJson(*profile).dump() << std::endl;
  return trainer_exit::kDone;
}

int PrintMemorySuite(const Arguments& arguments, const std::string& torch_build) {
  try {
    const absl::Status run =
        RunMemorySuite({.device = arguments.device,
                        .torch_build = torch_build,
                        .trace_folder = arguments.memory_suite,
                        .budget = absl::Seconds(arguments.suite_seconds),
                        .storm_cycles = arguments.storm_cycles},
                       [](const nlohmann::json& line) { std::cout << line.dump() << std::endl; });
    return run.ok() ? trainer_exit::kDone : Fail(trainer_exit::kBadModel, run);
  } catch (const std::exception& error) {
    // Between its trials, which catch their own: the card is lost.
    return Fail(trainer_exit::kInternal, absl::InternalError(DescribeError(error)));
  }
}

// Processors this process may use: less than the machine's in a container or under taskset.
absl::Status SetThreads(int from_flag) {
  int threads = from_flag;
  if (threads == 0) {
    HPO_ASSIGN_OR_RETURN(threads, TrainerThreads());
  }
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
  return absl::OkStatus();
}

// Threads of torch's pool that wait for work hand the processor over at once, instead of burning it
// for ten milliseconds: on a shared machine that is several times faster, on an idle one no slower
// (docs/benchmarks.md). libgomp reads the variable when it is loaded, so the program starts itself
// once more; where that fails it goes on.
void SpinBriefly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/1);
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (!error) ::execv(program.c_str(), argv);
}

// Large tensors come from the heap and stay with it, instead of being mapped and zeroed by the
// kernel again at every step.
void KeepLargeBlocks() {
  constexpr int kLargestBlock = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  ::mallopt(M_TRIM_THRESHOLD, kLargestBlock);
}

// Empty where the environment names no home.
std::string DefaultTokenCache() {
  const std::string caches = UserFolder("XDG_CACHE_HOME", ".cache");
  return caches.empty() ? "" : absl::StrCat(caches, "/hpo/tokens");
}

absl::StatusOr<text::TokenCache> OpenTokenCache(const Arguments& arguments) {
  const std::string folder = arguments.token_cache.value_or(DefaultTokenCache());
  if (folder == "none") return text::TokenCache();
  const absl::StatusOr<Bytes> limit = ParseBytes(arguments.token_cache_size);
  if (!limit.ok()) return Annotate(limit.status(), "--token-cache-size");
  return text::TokenCache(folder, *limit);
}

int Run(const Arguments& arguments) {
  if (!arguments.tokenize_folder.empty()) return Tokenize(arguments.tokenize_folder);
  if (arguments.list_parameters) {
    std::cout << DescribeParameters();
    return trainer_exit::kDone;
  }
  if (const absl::Status log = InitLog(arguments.log_level, arguments.log_json); !log.ok()) {
    return Fail(trainer_exit::kUsage, log);
  }
  const absl::StatusOr<std::string> torch_build = LoadedTorchBuild();
  if (!torch_build.ok()) return Fail(trainer_exit::kBadModel, torch_build.status());
  if (const absl::Status same = CheckTorchVersion(HPO_TORCH_VERSION, *torch_build); !same.ok()) {
    return Fail(trainer_exit::kBadModel, same);
  }
  if (const absl::Status set = SetThreads(arguments.threads); !set.ok())
    return Fail(trainer_exit::kUsage, set);
  KeepLargeBlocks();
  std::signal(SIGPIPE, SIG_IGN);
  if (!arguments.memory_suite.empty()) return PrintMemorySuite(arguments, *torch_build);
  if (arguments.profile_device) return PrintProfile(arguments.device, *torch_build);
  const absl::StatusOr<text::TokenCache> tokens = OpenTokenCache(arguments);
  if (!tokens.ok()) return Fail(trainer_exit::kUsage, tokens.status());
  if (!arguments.job_path.empty()) return RunJobFile(arguments.job_path, *torch_build, *tokens);
  const absl::StatusOr<int> fd = ProtocolDescriptor();
  if (!fd.ok()) {
    return Fail(trainer_exit::kUsage, absl::InvalidArgumentError(absl::StrCat(
                                          fd.status().message(),
                                          "; hpo-trainer is started by hpo-worker; to run one job "
                                          "alone use --job FILE")));
  }
  MessageChannel channel(*fd);
  // Slurm sends it to every process of a job step: the worker has it, too, and asks to stop.
  std::signal(SIGTERM, SIG_IGN);
  return Serve(channel, *torch_build, *tokens);
}

}  // namespace
}  // namespace hpo::trainer

int main(int argc, char** argv) {
  hpo::trainer::SpinBriefly(argv);
  CLI::App app{
      "Fine-tunes transformers for hpo-worker, or runs one job of a file (--job).\n"
      "HPO_NUM_THREADS sets the number of CPU threads, HPO_TRAINER_FD the file descriptor of the\n"
      "protocol (3)."};
  hpo::trainer::Arguments arguments;
  app.add_option("--job", arguments.job_path,
                 "Run the job of this JSON file alone; the protocol's lines go to standard output")
      ->type_name("FILE");
  app.add_option("--threads", arguments.threads, "CPU threads; default: HPO_NUM_THREADS, or all")
      ->check(hpo::AtLeast(1));
  app.add_option("--token-cache", arguments.token_cache,
                 "Cache folder of tokenized data for later trials, or none; default: "
                 "hpo/tokens in $XDG_CACHE_HOME or ~/.cache")
      ->envname("HPO_TOKEN_CACHE");
  app.add_option("--token-cache-size", arguments.token_cache_size,
                 "Disk space of the token cache; the least recently used files are removed first")
      ->envname("HPO_TOKEN_CACHE_SIZE")
      ->capture_default_str();
  app.add_option("--log-level", arguments.log_level, "trace, debug, info, warn, error or off");
  app.add_flag("--log-json", arguments.log_json, "Log one JSON object per line");
  app.add_flag("--list-parameters", arguments.list_parameters,
               "List the parameters a study may search, and exit");
  app.add_flag(
      "--profile-device", arguments.profile_device,
      "Measure the memory that context and libraries need, print it as one line of JSON, and exit");
  app.add_option("--memory-suite", arguments.memory_suite,
                 "Train synthetic configurations, print how their memory was predicted as lines of "
                 "JSON, write the allocator's traces to this folder, and exit")
      ->type_name("FOLDER");
  app.add_option("--suite-seconds", arguments.suite_seconds,
                 "Time limit of the memory suite; what would take longer is skipped")
      ->check(hpo::AtLeast(1))
      ->capture_default_str();
  app.add_option("--storm-cycles", arguments.storm_cycles,
                 "Number of out-of-memory errors that the memory suite causes in a row")
      ->check(hpo::AtLeast(1))
      ->capture_default_str();
  app.add_option("--device", arguments.device,
                 "Device of --profile-device and --memory-suite: cpu or cuda:N")
      ->capture_default_str();
  app.add_subcommand("tokenize",
                     "Turn lines {\"text\", \"pair\"?} of standard input into lines {\"ids\", "
                     "\"type_ids\"}")
      ->add_option("--model", arguments.tokenize_folder,
                   "Folder with the tokenizer's files; weights and config.json are not needed")
      ->type_name("DIR")
      ->required();
  app.set_version_flag("--version", HPO_VERSION " (torch " HPO_TORCH_VERSION ")");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : hpo::trainer_exit::kUsage;
  }
  return hpo::trainer::Run(arguments);
}
