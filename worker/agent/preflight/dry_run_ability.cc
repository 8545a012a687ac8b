#include "worker/agent/preflight/dry_run_ability.h"

#include <filesystem>
#include <memory>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/dry_run_package.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "worker/agent/preflight/dry_run_document.h"
#include "worker/agent/preflight/emulated_gpus.h"
#include "worker/agent/process/exit_outcome.h"
#include "worker/agent/process/trainer_process.h"

namespace hpo::agent {

absl::Status CheckNeeds(const DryRunNeeds& needs) {
  const auto lacks = [](const auto&... words) {
    return absl::FailedPreconditionError(absl::StrCat(words...));
  };
  if (needs.device.kind != "cuda") {
    return lacks("a dry run emulates a GPU, and this worker uses the CPU");
  }
  if (!needs.is_plain_program) {
    return lacks(
        "dry runs are for programs of your own, whose command has placeholders such as {train.lr} "
        "or reads HPO_PARAMS");
  }
  if (needs.gpus > 1) {
    return lacks("a dry run emulates one GPU, and trials of this worker take ", needs.gpus);
  }
  if (needs.plans) {
    return lacks(
        "the command has {micro_batch}: after an out-of-memory error the program runs again with a "
        "smaller one, which a dry run does not see");
  }
  if (needs.device.capability.empty() || ResidentThreads(needs.device) == 0) {
    return lacks("the driver does not tell the compute capability of ", needs.device.name,
                 " and its number of multiprocessors");
  }
  return absl::OkStatus();
}

absl::Status CheckDryRunPackage(const std::vector<std::string>& program,
                                const DeviceProfile& device, const std::string& folder) {
  const std::string gpus = folder + "/dry_run_gpus";
  const std::string log = folder + "/dry_run_check.log";
  const absl::Cleanup remove = [&] {
    std::error_code ignored;
    std::filesystem::remove(gpus, ignored);
    std::filesystem::remove(log, ignored);
  };
  HPO_RETURN_IF_ERROR(WriteFileAtomically(gpus, DescribeEmulatedGpus({device})));
  TrainerCommand command{.argv = {"/bin/sh", "-c", "exec \"$@\" > /dev/null", "sh"},
                         .environment = {{"HPO_EMULATED_GPUS", gpus}},
                         .log_path = log};
  command.argv.insert(command.argv.end(), program.begin(), program.end());
  command.argv.insert(command.argv.end(), {"--gpu", "list"});
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TrainerProcess> process,
                       TrainerProcess::Start(command));
  const std::optional<ProcessExit> end = process->WaitFor(kCheckTime);
  if (!end.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("hpo_dryrun was not done after ", absl::FormatDuration(kCheckTime)));
  }
  if (end->code == 0) return absl::OkStatus();
  const std::string why = DryRunComplaint(LogTail(log, 0, kComplaintLines));
  return absl::FailedPreconditionError(why.empty() ? "hpo_dryrun " + DescribeExit(*end) : why);
}

}  // namespace hpo::agent
