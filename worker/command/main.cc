// hpo-command-trainer: the trainer of `hpo-worker --trainer "python train.py --lr {train.lr}"`.
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/version.h"
#include "common/command_line/command_line.h"
#include "common/device/nvml.h"
#include "common/device/visible_gpus.h"
#include "common/protocol/trainer_protocol.h"
#include "worker/channel/message_channel.h"
#include "worker/command/child_process.h"
#include "worker/command/run_command.h"

namespace hpo::command {
namespace {

// What the program died of is for the worker to judge: it knows what the kernel has killed.
[[noreturn]] void DieOf(int fatal) {
  signal(fatal, SIG_DFL);
  raise(fatal);
  std::exit(128 + fatal);
}

std::string FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What watches the job's card; null on a CPU, and where there is no driver to ask.
std::unique_ptr<GpuProbe> ProbeFor(const TrainerJob& job, EventSink& events) {
  if (job.device == "cpu") return nullptr;
  absl::StatusOr<std::unique_ptr<NvmlProbe>> probe = NvmlProbe::Create();
  if (probe.ok()) return *std::move(probe);
  events.Send(LogMessage{.level = "warning",
                         .text = absl::StrCat("cannot measure what the program uses of the card: ",
                                              probe.status().message())});
  return nullptr;
}

// Where the worker is gone, the end of the channel says so; what the program has started is then
// ended, which a death together with the worker would leave running.
void OutliveTheWorker() {
  prctl(PR_SET_PDEATHSIG, 0);
  signal(SIGPIPE, SIG_IGN);
  NoteTermination();
}

int Serve(const CommandOptions& options) {
  const absl::StatusOr<int> fd = ProtocolDescriptor();
  if (!fd.ok()) {
    std::cerr << "hpo-command-trainer: " << fd.status().message()
              << "; it is started by: hpo-worker --trainer \"COMMAND {NAME}\"\n";
    return trainer_exit::kUsage;
  }
  OutliveTheWorker();
  MessageChannel channel(*fd);
  Hello hello{.program = absl::StrCat("hpo-command-trainer ", Version()), .capabilities = {"stop"}};
  if (options.Plans()) hello.capabilities.emplace_back("plan");
  channel.Send(hello);
  const absl::StatusOr<TrainerJob> job = channel.NextJob();
  if (absl::IsCancelled(job.status())) return trainer_exit::kDone;
  if (!job.ok()) {
    std::cerr << "hpo-command-trainer: " << job.status().message() << "\n";
    return trainer_exit::kInternal;
  }
  const std::unique_ptr<GpuProbe> probe = ProbeFor(*job, channel);
  // The worker shows its trainer the trial's GPUs, by their UUIDs.
  const CommandEnd end =
      RunCommand(options, *job, channel, channel, probe.get(),
                 absl::StrSplit(FromEnvironment(kVisibleGpusVariable), ',', absl::SkipEmpty()));
  if (end.signal != 0) DieOf(end.signal);
  if (!end.cannot_start.empty()) {
    std::cerr << "the program cannot be started: " << end.cannot_start << "\n";
    return trainer_exit::kCannotStart;
  }
  channel.Send(end.message);
  return trainer_exit::kDone;
}

int Main(int argc, const char* const* argv) {
  std::string command;
  std::string metrics_file;
  std::vector<std::string> patterns;
  CLI::App app(
      "Runs an ordinary program as the trainer of a trial: fills its command line, reads its "
      "metrics. hpo-worker starts it.",
      "hpo-command-trainer");
  app.add_option("command", command, "command for /bin/sh, with placeholders such as {train.lr}")
      ->required();
  app.add_option("--metric-pattern", patterns,
                 "regular expression that finds a metric in a printed line (repeatable)")
      ->allow_extra_args(false);
  app.add_option("--metrics-file", metrics_file,
                 "JSON file that the program writes its metrics to");
  app.set_version_flag("--version", absl::StrCat("hpo-command-trainer ", Version()));
  if (const std::optional<int> over = ParseCommandLine(app, argc, argv, std::cout, std::cerr)) {
    return *over == 0 ? 0 : trainer_exit::kUsage;
  }
  CommandOptions options{.command = CommandTemplate(command),
                         .metrics_file = CommandTemplate(metrics_file)};
  for (const std::string& text : patterns) {
    const absl::StatusOr<MetricPattern> pattern = ParseMetricPattern(text);
    if (!pattern.ok()) {
      std::cerr << "hpo-command-trainer: " << pattern.status().message() << "\n";
      return trainer_exit::kUsage;
    }
    options.patterns.push_back(*pattern);
  }
  return Serve(options);
}

}  // namespace
}  // namespace hpo::command

int main(int argc, char** argv) { return hpo::command::Main(argc, argv); }
