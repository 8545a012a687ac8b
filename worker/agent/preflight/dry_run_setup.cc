#include "worker/agent/preflight/dry_run_setup.h"

#include <csignal>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "worker/agent/preflight/emulated_gpus.h"
#include "worker/command/command_template.h"
#include "worker/command/program_files.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

// The beginning of the UUID of the first emulated GPU, and of no real one: what a program starts
// without the emulated libraries sees no GPU.
constexpr char kEmulatedUuid[] = "GPU-68706f65";

}  // namespace

DryRunFiles FilesIn(const std::string& folder) {
  return {.output = folder + "/output",
          .checkpoints = folder + "/checkpoints",
          .gpus = folder + "/gpus",
          .document = folder + "/document.json",
          .complaints = folder + "/complaints.log"};
}

void RemoveDryRun(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
}

absl::StatusOr<TrainerCommand> SetUpDryRun(const DryRunOptions& options, const TrainerJob& job,
                                           const std::vector<DeviceProfile>& gpus) {
  const DryRunFiles files = FilesIn(options.folder);
  RemoveDryRun(options.folder);
  std::error_code error;
  for (const std::string& folder : {files.output, files.checkpoints}) {
    if (fs::create_directories(folder, error); error) return FileError(error.value(), folder);
  }
  HPO_RETURN_IF_ERROR(WriteFileAtomically(files.gpus, DescribeEmulatedGpus(gpus)));
  const command::CommandTemplate program(options.command);
  const std::map<std::string, std::string> values = command::JobValues(job, job.task.plan);
  HPO_ASSIGN_OR_RETURN(const std::string filled,
                       program.Fill(job.task.params, values, /*for_shell=*/true));
  HPO_RETURN_IF_ERROR(command::WriteConfigs(program, job, values));

  TrainerCommand start{.argv = {"/bin/sh", "-c", "exec \"$@\" > \"$0\"", files.document},
                       .environment = options.environment,
                       .log_path = files.complaints,
                       .mark = options.mark,
                       // Which makes it end all that it has started, and remove its files.
                       .signal_of_parents_death = SIGTERM};
  start.environment.merge(command::ProgramEnvironment(job));
  start.environment["CUDA_VISIBLE_DEVICES"] = kEmulatedUuid;
  start.environment["HPO_EMULATED_GPUS"] = files.gpus;
  std::vector<std::string>& argv = start.argv;
  argv.insert(argv.end(), options.program.begin(), options.program.end());
  argv.insert(argv.end(), {"--json", "--ample", "--threads", absl::StrCat(options.threads),
                           "--timeout", absl::StrCat(absl::ToDoubleSeconds(options.timeout))});
  for (size_t i = 0; i < gpus.size(); ++i) {
    argv.insert(argv.end(), {"--gpu", EmulatedName(i)});
  }
  argv.insert(argv.end(), {"--", "/bin/sh", "-c", filled});
  return start;
}

}  // namespace hpo::agent
