#include "cli/fleet/engines/slurm_engine.h"

#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/engines/fleet_files.h"
#include "cli/fleet/engines/slurm_queue.h"
#include "cli/fleet/engines/slurm_script.h"
#include "common/base/status.h"
#include "common/command_line/temporary_folder.h"
#include "common/files/read_file.h"

namespace hpo::cli {
namespace {

constexpr EngineWords kSlurmWords{
    .name = "Slurm",
    .missing =
        "expected Slurm's programs here; run this on a login node of the cluster, or copy "
        "the script that hpo fleet slurm prints without --submit"};

// What sinfo -o %G has printed, each GRES once.
std::string GresText(absl::string_view printed) {
  std::set<std::string> kinds;
  for (const absl::string_view line : absl::StrSplit(printed, '\n', absl::SkipWhitespace())) {
    if (line != "(null)") kinds.emplace(line);
  }
  return kinds.empty() ? "none" : absl::StrJoin(kinds, ", ");
}

// 4 for a script with "#SBATCH --array=0-7%4"; 0: all tasks may run at a time.
size_t MaxRunningOf(absl::string_view script) {
  size_t most = 0;
  for (const absl::string_view line : absl::StrSplit(script, '\n')) {
    const size_t sign = line.find('%');
    const bool is_array = absl::StartsWith(line, "#SBATCH --array=");
    if (is_array && sign != absl::string_view::npos &&
        absl::SimpleAtoi(line.substr(sign + 1), &most)) {
      break;
    }
  }
  return most;
}

// The options for an array of `more` tasks, in addition to those that wait or run, if `most` of all
// of them may run at a time. Slurm counts each array by itself: the new one gets what the others
// leave, or waits for their end.
std::vector<std::string> MoreTasks(const std::vector<NamedWorker>& workers, size_t more,
                                   size_t most) {
  const size_t num_live = NumLive(workers);
  const std::string array = absl::StrCat("--array=0-", more - 1);
  if (most == 0 || num_live + more <= most) return {array};
  if (num_live < most) return {absl::StrCat(array, "%", most - num_live)};
  std::set<std::string> jobs;
  for (const NamedWorker& named : workers) jobs.insert(JobOfTask(named.worker.id));
  return {absl::StrCat(array, "%", most),
          absl::StrCat("--dependency=afterany:", absl::StrJoin(jobs, ":"))};
}

}  // namespace

SlurmEngine::SlurmEngine(EngineMeans means, std::string worker_program, std::string user)
    : means_(std::move(means)),
      worker_program_(std::move(worker_program)),
      user_(std::move(user)) {}

absl::StatusOr<std::string> SlurmEngine::Script(const FleetPlan& plan) const {
  HPO_RETURN_IF_ERROR(CheckSlurmWords(plan));
  HPO_RETURN_IF_ERROR(CheckSetup(means_, plan));
  return SlurmScript(plan, worker_program_);
}

absl::StatusOr<std::string> SlurmEngine::Run(const std::vector<std::string>& words,
                                             absl::Duration patience) const {
  return RunOf(means_, kSlurmWords, words, patience);
}

absl::Status SlurmEngine::Rejected(const FleetPlan& plan, const absl::Status& why) const {
  const bool is_of_gres = absl::StrContains(why.message(), "gres") ||
                          absl::StrContains(why.message(), "Requested node configuration");
  if (!is_of_gres || plan.gpus_per_worker == 0) return why;
  const absl::StatusOr<std::string> kinds = Run({"sinfo", "--noheader", "--format=%G"});
  return absl::InvalidArgumentError(absl::StrCat(
      why.message(), "; the script asks for ", plan.gpus_per_worker,
      plan.gpus_per_worker == 1 ? " GPU on a node" : " GPUs on a node",
      plan.gpu_type.empty() ? "" : absl::StrCat(" of the type ", plan.gpu_type),
      ", and the GRES of this cluster are: ", kinds.ok() ? GresText(*kinds) : "unknown",
      "; change --gpus-per-worker or --gpu-type (--gpus-per-worker 0 runs workers on CPUs)"));
}

absl::StatusOr<SubmittedFleet> SlurmEngine::Submit(const FleetPlan& plan) {
  HPO_ASSIGN_OR_RETURN(const std::string script, Script(plan));
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, List(plan.name));
  HPO_RETURN_IF_ERROR(CheckIsNew(kSlurmWords, plan, before));
  HPO_RETURN_IF_ERROR(KeepSecret(plan));
  HPO_ASSIGN_OR_RETURN(const std::string kept, KeepFile(plan, "fleet.sbatch", script));
  const absl::StatusOr<std::string> printed = Run({"sbatch", "--parsable", kept});
  if (!printed.ok()) return Rejected(plan, printed.status());
  // "JOB", or "JOB;CLUSTER" of several clusters.
  const std::string line(absl::StripAsciiWhitespace(*printed));
  return SubmittedFleet{
      .id = line.substr(0, line.find(';')), .kept = kept, .notes = NotesOnServer(plan)};
}

absl::StatusOr<std::vector<NamedWorker>> SlurmEngine::List(const std::string& name) {
  std::vector<std::string> words = {"squeue", "--noheader", "--array", "--user=" + user_,
                                    absl::StrCat("--format=", kSlurmQueueFormat)};
  if (!name.empty()) words.push_back("--name=" + FleetLabel(name));
  HPO_ASSIGN_OR_RETURN(const std::string printed, Run(words, kListPatience));
  return ParseSlurmQueue(printed);
}

absl::StatusOr<std::string> SlurmEngine::HowItEnded(const std::string& name) {
  std::error_code error;
  const std::string kept = FleetFolder(name) + "/fleet.sbatch";
  if (!std::filesystem::exists(kept, error)) return "";
  return absl::StrCat("its tasks have ended: their logs are ", FleetLabel(name),
                      "-JOB_TASK.log in the folder where it was submitted (", kept, ")");
}

absl::StatusOr<std::vector<NamedWorker>> SlurmEngine::ListKnown(const std::string& name) {
  HPO_ASSIGN_OR_RETURN(std::vector<NamedWorker> workers, List(name));
  if (NumLive(workers) > 0) return workers;
  return NoSuchFleet(kSlurmWords, name);
}

absl::Status SlurmEngine::Grow(const std::vector<NamedWorker>& workers, size_t more) {
  const std::string job = JobOfTask(TasksToEnd(workers, NumLive(workers) - 1).front());
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder,
                       TemporaryFolder::Create("hpo-fleet-"));
  const std::string script = folder->path() + "/fleet.sbatch";
  HPO_RETURN_IF_ERROR(Run({"scontrol", "write", "batch_script", job, script}).status());
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(script));
  std::vector<std::string> words = MoreTasks(workers, more, MaxRunningOf(text));
  words.insert(words.begin(), {"sbatch", "--parsable"});
  words.push_back(script);
  return Run(words).status();
}

absl::StatusOr<std::string> SlurmEngine::Scale(const std::string& name, int workers) {
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, ListKnown(name));
  const size_t num_before = NumLive(before);
  const auto wanted = static_cast<size_t>(workers);
  if (wanted > num_before) {
    HPO_RETURN_IF_ERROR(Grow(before, wanted - num_before));
    return absl::StrCat("submitted ", WorkersText(wanted - num_before), " more");
  }
  if (wanted == num_before) return absl::StrCat("it has ", WorkersText(wanted), " already");
  std::vector<std::string> words = TasksToEnd(before, wanted);
  const size_t num_ended = words.size();
  words.insert(words.begin(), "scancel");
  HPO_RETURN_IF_ERROR(Run(words).status());
  return absl::StrCat("cancelled ", WorkersText(num_ended),
                      "; those that run requeue their trials first");
}

absl::Status SlurmEngine::Stop(const std::string& name, absl::Duration patience) {
  // Again and again: a task may have requeued itself at the moment of the first cancellation.
  return EndAll(*this, means_, kSlurmWords, name, patience, [this, &name](const auto& /*left*/) {
    return Run({"scancel", "--user=" + user_, "--name=" + FleetLabel(name)}).status();
  });
}

}  // namespace hpo::cli
