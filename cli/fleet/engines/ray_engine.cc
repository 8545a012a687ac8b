#include "cli/fleet/engines/ray_engine.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/engines/fleet_files.h"
#include "cli/fleet/engines/ray_script.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::json;

constexpr EngineWords kRayWords{
    .name = "Ray",
    .missing = "expected the Python in which Ray and the wheel hpo-service are installed"};

FleetWorkerState StateOfActor(const std::string& state) {
  if (state == "running") return FleetWorkerState::kRunning;
  return state == "waiting" ? FleetWorkerState::kWaiting : FleetWorkerState::kEnded;
}

NamedWorker WorkerOf(const Json& json) {
  NamedWorker found{.fleet = json.at("fleet"), .worker = {.id = json.at("id")}};
  found.worker.state = StateOfActor(json.at("state"));
  found.worker.name = found.worker.id;
  found.worker.node = json.at("node");
  found.worker.reason = json.at("reason");
  if (const Json& running = json.at("running_for_s"); !running.is_null()) {
    found.worker.running_for = absl::Seconds(running.get<double>());
  }
  if (const Json& restarts = json.at("restarts"); !restarts.is_null()) {
    found.worker.restarts = restarts.get<int64_t>();
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<NamedWorker>> ParseRayWorkers(const std::string& printed) {
  try {
    std::vector<NamedWorker> workers;
    for (const Json& one : Json::parse(printed)) workers.push_back(WorkerOf(one));
    return workers;
  } catch (const Json::exception& error) {
    return absl::InternalError(
        absl::StrCat("hpo.ray.jobs: expected a list of workers, got '", printed, "'"));
  }
}

RayEngine::RayEngine(EngineMeans means) : means_(std::move(means)) {}

absl::StatusOr<std::string> RayEngine::Script(const FleetPlan& plan) const {
  return RayScript(plan);
}

absl::StatusOr<std::string> RayEngine::Run(const std::vector<std::string>& words,
                                           absl::Duration patience) const {
  std::vector<std::string> all = {"python3", "-m", "hpo.ray.jobs"};
  all.insert(all.end(), words.begin(), words.end());
  const absl::StatusOr<std::string> printed = RunOf(means_, kRayWords, all, patience);
  if (printed.ok() || !absl::StrContains(printed.status().message(), "No module named")) {
    return printed;
  }
  return absl::NotFoundError(absl::StrCat("python3 of PATH lacks hpo or Ray: ", kRayWords.missing,
                                          ", first in PATH (", printed.status().message(), ")"));
}

absl::StatusOr<SubmittedFleet> RayEngine::Submit(const FleetPlan& plan) {
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, List(plan.name));
  HPO_RETURN_IF_ERROR(CheckIsNew(kRayWords, plan, before));
  // Ray copies this folder to its nodes, so nothing else may be in it.
  FleetPlan job = plan;
  job.folder = plan.folder + "/job";
  HPO_ASSIGN_OR_RETURN(const std::string kept, KeepFile(job, "fleet.py", RayScript(plan)));
  std::string secret;
  if (plan.server.HasSecret()) {
    HPO_ASSIGN_OR_RETURN(secret, ReadSecret(plan));
    secret += "\n";
  }
  HPO_RETURN_IF_ERROR(KeepOrDropFile(job, "join", secret));
  HPO_ASSIGN_OR_RETURN(const std::string printed,
                       Run({"submit", plan.name, job.folder, absl::StrCat(plan.gpus_per_worker)}));
  SubmittedFleet submitted{.kept = kept, .notes = NotesOnServer(plan)};
  const Json said = Json::parse(printed, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object() || !said.contains("id") || !said["id"].is_string()) {
    return absl::InternalError(absl::StrCat("hpo.ray.jobs: expected a job, got '", printed, "'"));
  }
  submitted.id = said["id"];
  for (const Json& note : said.value("notes", Json::array())) submitted.notes.push_back(note);
  return submitted;
}

absl::StatusOr<std::vector<NamedWorker>> RayEngine::List(const std::string& name) {
  std::vector<std::string> words = {"list"};
  if (!name.empty()) words.push_back(name);
  HPO_ASSIGN_OR_RETURN(const std::string printed, Run(words, kListPatience));
  return ParseRayWorkers(printed);
}

absl::StatusOr<std::string> RayEngine::HowItEnded(const std::string& name) {
  HPO_ASSIGN_OR_RETURN(const std::string printed, Run({"end", name}, kListPatience));
  const Json end = Json::parse(printed, nullptr, /*allow_exceptions=*/false);
  if (!end.is_object() || !end.contains("id")) return "";
  const std::string id = end.value("id", "");
  const std::string said = end.value("said", "");
  return absl::StrCat("its last job ", id, " has ended: ", end.value("status", ""),
                      said.empty() ? "" : ": ", said, "; its log: ray job logs ", id);
}

absl::StatusOr<std::string> RayEngine::Scale(const std::string& name, int workers) {
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, List(name));
  if (NumLive(before) == 0) return NoSuchFleet(kRayWords, name);
  HPO_RETURN_IF_ERROR(Run({"scale", name, absl::StrCat(workers)}).status());
  return ResizedText(NumLive(before), static_cast<size_t>(workers),
                     "those that are left out requeue their trials first");
}

absl::Status RayEngine::Stop(const std::string& name, absl::Duration patience) {
  const std::string longest = absl::StrCat(absl::ToInt64Seconds(patience));
  return EndAll(*this, means_, kRayWords, name, patience, [&](const auto& /*left*/) {
    return Run({"stop", name, longest}).status();
  });
}

}  // namespace hpo::cli
