#include "cli/fleet/engines/sky_engine.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/engines/fleet_files.h"
#include "cli/fleet/engines/sky_task.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::json;

constexpr char kTaskFile[] = "fleet.yaml";
constexpr char kSecretFile[] = "secrets.env";

constexpr EngineWords kSkyWords{
    .name = "SkyPilot",
    .missing =
        "expected SkyPilot's program here (pip install skypilot), or copy the task that hpo "
        "fleet sky prints without --submit",
    .slow = "starting SkyPilot's API server, or waiting for it ..."};

// Statuses of managed jobs of SkyPilot 0.14; what has ended is named SUCCEEDED, CANCELLED or
// FAILED.
FleetWorkerState StateOfJob(const std::string& status) {
  if (status == "RUNNING" || status == "WINDING_DOWN") return FleetWorkerState::kRunning;
  if (status == "CANCELLING") return FleetWorkerState::kEnding;
  for (const char* const waits : {"PENDING", "SUBMITTED", "STARTING", "RECOVERING"}) {
    if (status == waits) return FleetWorkerState::kWaiting;
  }
  return FleetWorkerState::kEnded;
}

// The null of a field as nothing.
std::string TextOf(const Json& job, const char* field) {
  return job.contains(field) && job[field].is_string() ? job[field].get<std::string>() : "";
}

// "hpo-toy" and 3 of "hpo-toy-3"; false: no name of a worker.
bool SplitJobName(const std::string& name, std::string& label, int& number) {
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos || !absl::SimpleAtoi(name.substr(dash + 1), &number)) return false;
  label = name.substr(0, dash);
  return true;
}

std::string JobNameOf(const NamedWorker& worker) {
  return worker.worker.id.substr(worker.worker.id.find(' ') + 1);
}

std::string JobIdOf(const NamedWorker& worker) {
  return worker.worker.id.substr(0, worker.worker.id.find(' '));
}

int NumberOfJob(const NamedWorker& worker) {
  std::string label;
  int number = 0;
  return SplitJobName(JobNameOf(worker), label, number) ? number : 0;
}

std::vector<NamedWorker> JobsOf(const Json& jobs) {
  std::vector<NamedWorker> workers;
  for (const Json& job : jobs) {
    std::string label;
    int number = 0;
    const std::string name = TextOf(job, "job_name");
    if (!SplitJobName(name, label, number)) continue;
    const std::optional<std::string> fleet = NameOfLabel(label);
    FleetWorker worker{.id = absl::StrCat(job.at("job_id").get<int64_t>(), " ", name),
                       .name = name};
    worker.state = StateOfJob(TextOf(job, "status"));
    if (!fleet || worker.state == FleetWorkerState::kEnded) continue;
    worker.node = TextOf(job, "infra");
    if (worker.state == FleetWorkerState::kWaiting) worker.reason = TextOf(job, "details");
    if (worker.state == FleetWorkerState::kRunning &&
        job.value("job_duration", Json()).is_number()) {
      worker.running_for = absl::Seconds(job["job_duration"].get<double>());
    }
    if (job.value("recovery_count", Json()).is_number()) worker.restarts = job["recovery_count"];
    workers.push_back({*fleet, std::move(worker)});
  }
  std::sort(workers.begin(), workers.end(), [](const NamedWorker& a, const NamedWorker& b) {
    return std::pair(a.fleet, NumberOfJob(a)) < std::pair(b.fleet, NumberOfJob(b));
  });
  return workers;
}

// SkyPilot 0.14 fails where no managed job has run yet, as its controller is not there.
bool HasNoJobs(const absl::Status& status) {
  return absl::StrContains(status.message(), "No in-progress managed jobs");
}

}  // namespace

absl::StatusOr<std::vector<NamedWorker>> ParseSkyJobs(const std::string& printed) {
  try {
    return JobsOf(Json::parse(printed));
  } catch (const Json::exception& error) {
    return absl::InternalError(absl::StrCat(
        "sky jobs queue: expected a list of jobs, got another text (", error.what(), ")"));
  }
}

SkyEngine::SkyEngine(EngineMeans means) : means_(std::move(means)) {}

absl::StatusOr<std::string> SkyEngine::Script(const FleetPlan& plan) const {
  if (plan.gpus_per_worker > 0 && plan.gpu_type.empty()) {
    return Unexpected("--gpu-type", "a GPU of `sky gpus list`, such as A100", "none");
  }
  HPO_RETURN_IF_ERROR(CheckSetup(means_, plan));
  return SkyTask(plan);
}

absl::StatusOr<std::string> SkyEngine::Run(const std::vector<std::string>& words,
                                           absl::Duration patience) const {
  std::vector<std::string> all = {"sky", "jobs"};
  all.insert(all.end(), words.begin(), words.end());
  return RunOf(means_, kSkyWords, all, patience);
}

absl::Status SkyEngine::Launch(const std::string& name, const std::string& folder,
                               const std::vector<NamedWorker>& workers, size_t more) const {
  std::set<int> taken;
  for (const NamedWorker& worker : workers) taken.insert(NumberOfJob(worker));
  const std::string secret = absl::StrCat(folder, "/", kSecretFile);
  const bool has_secret = std::filesystem::exists(secret);
  for (int number = 0; more > 0; ++number) {
    if (taken.contains(number)) continue;
    --more;
    const std::string job = absl::StrCat(FleetLabel(name), "-", number);
    std::vector<std::string> words = {
        "launch", "--yes", "--async", "--name", job, "--env", "HPO_WORKER_NAME=" + job};
    if (has_secret) words.insert(words.end(), {"--secret-file", secret});
    words.push_back(absl::StrCat(folder, "/", kTaskFile));
    HPO_RETURN_IF_ERROR(Annotate(Run(words).status(), job));
  }
  return absl::OkStatus();
}

absl::StatusOr<SubmittedFleet> SkyEngine::Submit(const FleetPlan& plan) {
  HPO_ASSIGN_OR_RETURN(const std::string task, Script(plan));
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, List(plan.name));
  HPO_RETURN_IF_ERROR(CheckIsNew(kSkyWords, plan, before));
  HPO_ASSIGN_OR_RETURN(const std::string kept, KeepFile(plan, kTaskFile, task));
  std::string secret;
  if (plan.server.HasSecret()) {
    HPO_ASSIGN_OR_RETURN(const std::string join, ReadSecret(plan));
    secret = absl::StrCat("HPO_JOIN='", join, "'\n");
  }
  HPO_RETURN_IF_ERROR(KeepOrDropFile(plan, kSecretFile, secret));
  HPO_RETURN_IF_ERROR(Launch(plan.name, plan.folder, before, static_cast<size_t>(plan.workers)));
  return SubmittedFleet{
      .id = absl::StrCat("managed jobs ", FleetLabel(plan.name), "-0 to -", plan.workers - 1),
      .kept = kept,
      .notes = NotesOnServer(plan)};
}

absl::StatusOr<std::vector<NamedWorker>> SkyEngine::List(const std::string& name) {
  const absl::StatusOr<std::string> printed =
      Run({"queue", "--skip-finished", "--output", "json"}, kListPatience);
  if (HasNoJobs(printed.status())) return std::vector<NamedWorker>();
  HPO_RETURN_IF_ERROR(printed.status());
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> all, ParseSkyJobs(*printed));
  std::vector<NamedWorker> own;
  std::copy_if(all.begin(), all.end(), std::back_inserter(own),
               [&name](const NamedWorker& one) { return name.empty() || one.fleet == name; });
  return own;
}

absl::StatusOr<std::string> SkyEngine::HowItEnded(const std::string& name) {
  std::error_code error;
  if (!std::filesystem::exists(absl::StrCat(FleetFolder(name), "/", kTaskFile), error)) return "";
  return absl::StrCat(
      "its jobs ", FleetLabel(name),
      "-N have ended: sky jobs queue says how, and sky jobs logs NUMBER has the log");
}

absl::Status SkyEngine::Cancel(std::vector<std::string> ids) const {
  ids.insert(ids.begin(), {"cancel", "--yes"});
  return Run(ids).status();
}

absl::StatusOr<std::string> SkyEngine::Scale(const std::string& name, int workers) {
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, List(name));
  const size_t num_before = NumLive(before);
  const auto wanted = static_cast<size_t>(workers);
  if (num_before == 0) return NoSuchFleet(kSkyWords, name);
  if (wanted == num_before) return absl::StrCat("it has ", WorkersText(wanted), " already");
  if (wanted > num_before) {
    HPO_RETURN_IF_ERROR(Launch(name, FleetFolder(name), before, wanted - num_before));
    return absl::StrCat("launched ", WorkersText(wanted - num_before), " more");
  }
  std::vector<std::string> ids;
  for (auto one = before.rbegin(); one != before.rend() && ids.size() < num_before - wanted;
       ++one) {
    if (one->worker.IsLive()) ids.push_back(JobIdOf(*one));
  }
  HPO_RETURN_IF_ERROR(Cancel(ids));
  return absl::StrCat("cancelled ", WorkersText(ids.size()));
}

absl::Status SkyEngine::Stop(const std::string& name, absl::Duration patience) {
  return EndAll(*this, means_, kSkyWords, name, patience,
                [this](const std::vector<NamedWorker>& left) {
                  std::vector<std::string> ids;
                  for (const NamedWorker& one : left) ids.push_back(JobIdOf(one));
                  return Cancel(std::move(ids));
                });
}

}  // namespace hpo::cli
