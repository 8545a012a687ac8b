#include "worker/agent/preflight/dry_runner.h"

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/base/clock.h"
#include "common/files/read_file.h"
#include "common/space/params.h"
#include "spdlog/spdlog.h"
#include "worker/agent/attempt/trainer_job.h"
#include "worker/agent/preflight/dry_run_document.h"
#include "worker/agent/preflight/emulated_gpus.h"
#include "worker/agent/preflight/machine_turn.h"
#include "worker/agent/process/exit_outcome.h"

namespace hpo::agent {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);

// As the trial would get it, but for its folders.
absl::StatusOr<TrainerJob> JobOf(const Assignment& assignment, const DryRunOptions& options,
                                 const DeviceProfile& device, const ModelCatalog& models,
                                 const DataCatalog& data) {
  absl::StatusOr<JobPlaces> places = FindPlaces(assignment, models, data);
  if (!places.ok()) return places.status();
  const DryRunFiles files = FilesIn(options.folder);
  places->device = "cuda:0";
  places->output_dir = files.output;
  if (options.has_checkpoints) places->checkpoints.folder = files.checkpoints;
  places->base = device.base;
  return MakeJob(assignment, *places);
}

// It ends its program and removes its files where it has the time.
void End(TrainerProcess& process) {
  kill(process.pid(), SIGTERM);
  if (!process.WaitFor(ProcessDryRunner::kEndingTime).has_value()) process.Kill();
}

}  // namespace

std::optional<PreflightReport> ProcessDryRunner::Run(const Preflight& preflight,
                                                     const StopWait& stop) {
  const absl::StatusOr<UniqueFd> turn = TakeTurn(options_.lock, stop);
  if (!turn.ok()) return std::nullopt;
  const absl::Cleanup remove = [this] { RemoveDryRun(options_.folder); };
  std::optional<PreflightReport> report = RunInTurn(preflight, stop);
  if (!report.has_value()) return std::nullopt;
  const bool failed = report->needs.front().state == PreflightState::kFailed;
  spdlog::log(failed ? spdlog::level::warn : spdlog::level::info, "the configuration {}: {}",
              FormatParams(preflight.assignment.task.params),
              DescribeReport(*report, device_.total));
  return report;
}

std::optional<PreflightReport> ProcessDryRunner::RunInTurn(const Preflight& preflight,
                                                           const StopWait& stop) const {
  const auto fails = [&](const absl::Status& why) {
    return FailedReport(preflight.id, device_, why.message(), absl::ZeroDuration());
  };
  const absl::StatusOr<TrainerJob> job =
      JobOf(preflight.assignment, options_, device_, models_, data_);
  if (!job.ok()) return fails(job.status());
  const std::vector<DeviceProfile> gpus = GpusOfDryRun(device_, preflight.others);
  const absl::StatusOr<TrainerCommand> command = SetUpDryRun(options_, *job, gpus);
  if (!command.ok()) return fails(command.status());
  const absl::StatusOr<std::unique_ptr<TrainerProcess>> process = TrainerProcess::Start(*command);
  if (!process.ok()) return fails(process.status());
  return Await(preflight, gpus, **process, stop);
}

std::optional<PreflightReport> ProcessDryRunner::Await(const Preflight& preflight,
                                                       const std::vector<DeviceProfile>& gpus,
                                                       TrainerProcess& process,
                                                       const StopWait& stop) const {
  const SystemClock clock;
  const absl::Duration began = clock.Monotonic();
  std::optional<ProcessExit> exit;
  DryRunEnd end;
  while (!(exit = process.Poll()).has_value()) {
    if (stop(absl::ZeroDuration())) {
      End(process);
      return std::nullopt;
    }
    if (clock.Monotonic() - began > options_.timeout + kExtraTime) {
      end.timed_out = true;
      break;
    }
    exit = process.WaitFor(kPoll);
    if (exit.has_value()) break;
  }
  end.took = clock.Monotonic() - began;
  if (end.timed_out) End(process);
  if (exit.has_value()) end.how = DescribeExit(*exit);
  const DryRunFiles files = FilesIn(options_.folder);
  end.document = ReadFile(files.document).value_or("");
  end.complaint = LogTail(files.complaints, /*from=*/0, kComplaintLines);
  return ReportOf(preflight.id, gpus, end);
}

}  // namespace hpo::agent
