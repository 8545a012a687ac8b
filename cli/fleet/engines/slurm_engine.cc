#include "cli/fleet/engines/slurm_engine.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/fleet/engines/fleet_files.h"
#include "cli/fleet/engines/slurm_queue.h"
#include "cli/fleet/engines/slurm_script.h"
#include "common/base/status.h"
#include "common/command_line/temporary_folder.h"

namespace hpo::cli {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);

std::string WorkersText(size_t count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

size_t NumLive(const std::vector<NamedWorker>& workers) { return TasksToEnd(workers, 0).size(); }

// What sinfo -o %G has printed, each GRES once.
std::string GresText(absl::string_view printed) {
  std::set<std::string> kinds;
  for (const absl::string_view line : absl::StrSplit(printed, '\n', absl::SkipWhitespace())) {
    if (line != "(null)") kinds.emplace(line);
  }
  return kinds.empty() ? "none" : absl::StrJoin(kinds, ", ");
}

absl::Status Unknown(const std::string& name) {
  return absl::NotFoundError(absl::StrCat(
      "no worker of fleet ", name, " is in Slurm's queue; hpo fleet status lists the fleets"));
}

}  // namespace

SlurmEngine::SlurmEngine(EngineMeans means, std::string worker_program, std::string user)
    : means_(std::move(means)),
      worker_program_(std::move(worker_program)),
      user_(std::move(user)) {}

std::string SlurmEngine::Script(const FleetPlan& plan) const {
  return SlurmScript(plan, worker_program_);
}

absl::StatusOr<std::string> SlurmEngine::Run(const std::vector<std::string>& words) const {
  const absl::StatusOr<ProgramOutput> ended = means_.run(words);
  if (absl::IsNotFound(ended.status())) {
    return absl::NotFoundError(absl::StrCat(
        words[0],
        " is not in PATH: expected Slurm's programs here; run this on a login node of the "
        "cluster, or copy the script that hpo fleet slurm prints without --submit"));
  }
  HPO_RETURN_IF_ERROR(ended.status());
  if (ended->status == 0) return ended->output;
  return absl::UnavailableError(
      absl::StrCat("Slurm's ", words[0], " failed: ", ComplaintOf(words[0], *ended)));
}

absl::Status SlurmEngine::Rejected(const FleetPlan& plan, const absl::Status& why) const {
  const bool is_of_gres = absl::StrContains(why.message(), "gres") ||
                          absl::StrContains(why.message(), "Requested node configuration");
  if (!is_of_gres || plan.gpus_per_worker == 0) return why;
  const absl::StatusOr<std::string> kinds = Run({"sinfo", "--noheader", "--format=%G"});
  return absl::InvalidArgumentError(absl::StrCat(
      why.message(), "; the script asks for ", plan.gpus_per_worker, " GPUs on a node",
      plan.gpu_type.empty() ? "" : absl::StrCat(" of the type ", plan.gpu_type),
      ", and the GRES of this cluster are: ", kinds.ok() ? GresText(*kinds) : "unknown",
      "; change --gpus-per-worker or --gpu-type (--gpus-per-worker 0 runs workers on CPUs)"));
}

absl::StatusOr<SubmittedFleet> SlurmEngine::Submit(const FleetPlan& plan) {
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, List(plan.name));
  if (!before.empty()) {
    return absl::AlreadyExistsError(
        absl::StrCat("fleet ", plan.name, " is in Slurm's queue already, with ",
                     WorkersText(before.size()), "; change their number: hpo fleet scale ",
                     plan.name, " --workers ", plan.workers, ", or give another --name"));
  }
  HPO_RETURN_IF_ERROR(KeepSecret(plan));
  HPO_ASSIGN_OR_RETURN(const std::string kept, KeepFile(plan, "fleet.sbatch", Script(plan)));
  const absl::StatusOr<std::string> printed = Run({"sbatch", "--parsable", kept});
  if (!printed.ok()) return Rejected(plan, printed.status());
  // "JOB", or "JOB;CLUSTER" of several clusters.
  const std::string line(absl::StripAsciiWhitespace(*printed));
  SubmittedFleet submitted{.id = line.substr(0, line.find(';')), .kept = kept};
  if (!plan.server.HasSecret() && IsLoopback(plan.server.address)) {
    submitted.notes.push_back(absl::StrCat("workers on other nodes cannot reach the server, as ",
                                           plan.server.address, " is of this machine alone"));
  }
  return submitted;
}

absl::StatusOr<std::vector<NamedWorker>> SlurmEngine::List(const std::string& name) {
  std::vector<std::string> words = {"squeue", "--noheader", "--array", "--user=" + user_,
                                    absl::StrCat("--format=", kSlurmQueueFormat)};
  if (!name.empty()) words.push_back("--name=" + FleetLabel(name));
  HPO_ASSIGN_OR_RETURN(const std::string printed, Run(words));
  return ParseSlurmQueue(printed);
}

absl::StatusOr<std::vector<NamedWorker>> SlurmEngine::ListKnown(const std::string& name) {
  HPO_ASSIGN_OR_RETURN(std::vector<NamedWorker> workers, List(name));
  if (NumLive(workers) > 0) return workers;
  return Unknown(name);
}

absl::Status SlurmEngine::Grow(const std::vector<NamedWorker>& workers, size_t more) {
  const std::string job = JobOfTask(TasksToEnd(workers, NumLive(workers) - 1).front());
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder,
                       TemporaryFolder::Create("hpo-fleet-"));
  const std::string script = folder->path() + "/fleet.sbatch";
  HPO_RETURN_IF_ERROR(Run({"scontrol", "write", "batch_script", job, script}).status());
  return Run({"sbatch", "--parsable", absl::StrCat("--array=0-", more - 1), script}).status();
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
  HPO_ASSIGN_OR_RETURN(std::vector<NamedWorker> left, List(name));
  if (left.empty()) return Unknown(name);
  absl::Duration waited = absl::ZeroDuration();
  while (!left.empty()) {
    // Again and again: a task may have requeued itself at the moment of the first cancellation.
    if (NumLive(left) > 0) {
      HPO_RETURN_IF_ERROR(
          Run({"scancel", "--user=" + user_, "--name=" + FleetLabel(name)}).status());
    }
    if (waited >= patience || !means_.pause(kBetweenLooks)) {
      return absl::DeadlineExceededError(absl::StrCat(
          WorkersText(left.size()), " of fleet ", name, " have not ended after ",
          absl::FormatDuration(waited), ", the first is ", left.front().worker.id, " on ",
          left.front().worker.node.empty() ? "no node" : left.front().worker.node,
          "; they are cancelled, and hpo fleet status ", name, " shows when they have ended"));
    }
    waited += kBetweenLooks;
    HPO_ASSIGN_OR_RETURN(left, List(name));
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
