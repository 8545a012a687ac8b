#include "cli/fleet/engines/kubernetes_engine.h"

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/engines/fleet_files.h"
#include "cli/fleet/engines/kubernetes_manifest.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/command_line/temporary_folder.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::json;

constexpr char kManaged[] = "app.kubernetes.io/managed-by=hpo";

constexpr EngineWords kKubernetesWords{
    .name = "Kubernetes",
    .missing =
        "expected Kubernetes' program here; install it, or copy the manifest that hpo "
        "fleet kubernetes prints without --submit"};

std::string LabelOf(const Json& object) {
  return object.at("metadata").value("labels", Json::object()).value(kKubernetesLabel, "");
}

int64_t CountIn(const Json& annotations, const char* name) {
  int64_t count = 0;
  return absl::SimpleAtoi(annotations.value(name, "0"), &count) ? count : 0;
}

// Why the pod waits: the scheduler's words, or those of the container's runtime.
std::string ReasonOf(const Json& status) {
  for (const Json& container : status.value("containerStatuses", Json::array())) {
    const Json waiting = container.value("state", Json::object()).value("waiting", Json::object());
    if (waiting.contains("reason")) return waiting.value("message", waiting.value("reason", ""));
  }
  for (const Json& condition : status.value("conditions", Json::array())) {
    if (condition.value("status", "") == "False" && condition.value("type", "") == "PodScheduled") {
      return condition.value("message", "");
    }
  }
  return "";
}

FleetWorkerState StateOfPod(const Json& pod) {
  const std::string phase = pod.at("status").value("phase", "Pending");
  if (phase == "Succeeded" || phase == "Failed") return FleetWorkerState::kEnded;
  if (pod.at("metadata").contains("deletionTimestamp")) return FleetWorkerState::kEnding;
  return phase == "Running" ? FleetWorkerState::kRunning : FleetWorkerState::kWaiting;
}

FleetWorker WorkerOfPod(const Json& pod, absl::Time now) {
  const Json& metadata = pod.at("metadata");
  const Json& status = pod.at("status");
  FleetWorker worker{.id = metadata.at("name"), .state = StateOfPod(pod)};
  const std::string index = metadata.value("labels", Json::object())
                                .value("batch.kubernetes.io/job-completion-index", "");
  if (!index.empty()) worker.name = absl::StrCat(LabelOf(pod), "-", index);
  worker.node = pod.at("spec").value("nodeName", "");
  if (worker.state == FleetWorkerState::kWaiting) worker.reason = ReasonOf(status);
  absl::Time began;
  const bool has_begun =
      absl::ParseTime(absl::RFC3339_full, status.value("startTime", ""), &began, nullptr);
  if (worker.state == FleetWorkerState::kRunning && has_begun) worker.running_for = now - began;
  // Of this index of the Job: failures that count, and those that podFailurePolicy ignores.
  const Json annotations = metadata.value("annotations", Json::object());
  worker.restarts = CountIn(annotations, "batch.kubernetes.io/job-index-failure-count") +
                    CountIn(annotations, "batch.kubernetes.io/job-index-ignored-failure-count");
  return worker;
}

bool HasEnded(const Json& job) {
  for (const Json& condition :
       job.value("status", Json::object()).value("conditions", Json::array())) {
    const std::string type = condition.value("type", "");
    if ((type == "Complete" || type == "Failed") && condition.value("status", "") == "True") {
      return true;
    }
  }
  return false;
}

// A job that has no pod as one worker.
FleetWorker WorkerOfJob(const Json& job) {
  FleetWorker worker{.id = job.at("metadata").at("name")};
  if (job.at("metadata").contains("deletionTimestamp")) {
    worker.state = FleetWorkerState::kEnding;
  } else {
    worker.reason = job.at("spec").value("suspend", false)
                        ? "the job is suspended, until Kueue admits it"
                        : "the job has no pod yet";
  }
  return worker;
}

std::vector<NamedWorker> WorkersOf(const Json& items, absl::Time now) {
  std::vector<NamedWorker> workers;
  std::set<std::string> with_pods;
  for (const Json& item : items) {
    const std::optional<std::string> fleet = NameOfLabel(LabelOf(item));
    if (!fleet || item.at("kind") != "Pod") continue;
    const FleetWorker worker = WorkerOfPod(item, now);
    if (worker.state == FleetWorkerState::kEnded) continue;
    with_pods.insert(*fleet);
    workers.push_back({*fleet, worker});
  }
  for (const Json& item : items) {
    const std::optional<std::string> fleet = NameOfLabel(LabelOf(item));
    if (!fleet || item.at("kind") != "Job" || HasEnded(item) || with_pods.contains(*fleet))
      continue;
    workers.push_back({*fleet, WorkerOfJob(item)});
  }
  return workers;
}

bool LacksCluster(absl::string_view message) {
  return absl::StrContains(message, "localhost:8080") ||
         absl::StrContains(message, "current-context") ||
         absl::StrContains(message, "no configuration has been provided");
}

}  // namespace

absl::StatusOr<std::vector<NamedWorker>> ParseKubernetesObjects(const std::string& printed,
                                                                absl::Time now) {
  try {
    return WorkersOf(Json::parse(printed).at("items"), now);
  } catch (const Json::exception& error) {
    return absl::InternalError(absl::StrCat(
        "kubectl: expected a list of jobs and pods, got another text (", error.what(), ")"));
  }
}

KubernetesEngine::KubernetesEngine(EngineMeans means) : means_(std::move(means)) {}

absl::StatusOr<std::string> KubernetesEngine::Script(const FleetPlan& plan) const {
  HPO_RETURN_IF_ERROR(CheckKubernetesWords(plan));
  HPO_RETURN_IF_ERROR(CheckSetup(means_, plan));
  return KubernetesManifest(plan);
}

absl::StatusOr<std::string> KubernetesEngine::Run(const std::vector<std::string>& words,
                                                  absl::Duration patience) const {
  std::vector<std::string> all = {"kubectl"};
  all.insert(all.end(), words.begin(), words.end());
  absl::StatusOr<std::string> printed = RunOf(means_, kKubernetesWords, all, patience);
  if (printed.ok() || !LacksCluster(printed.status().message())) return printed;
  return absl::UnavailableError(absl::StrCat(
      "kubectl knows no cluster: expected a context; choose one with kubectl config use-context "
      "NAME, or set KUBECONFIG (",
      printed.status().message(), ")"));
}

absl::Status KubernetesEngine::KeepSecretInCluster(const FleetPlan& plan) const {
  HPO_ASSIGN_OR_RETURN(const std::string secret, ReadSecret(plan));
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TemporaryFolder> folder,
                       TemporaryFolder::Create("hpo-fleet-"));
  FleetPlan aside = plan;
  aside.folder = folder->path();
  HPO_ASSIGN_OR_RETURN(const std::string file,
                       KeepFile(aside, "secret.yaml", KubernetesSecret(plan, secret)));
  // kubectl apply on its own would repeat the secret in an annotation.
  return Run({"apply", "--server-side", "--force-conflicts", "-f", file}).status();
}

absl::StatusOr<SubmittedFleet> KubernetesEngine::Submit(const FleetPlan& plan) {
  HPO_ASSIGN_OR_RETURN(const std::string manifest, Script(plan));
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, List(plan.name));
  HPO_RETURN_IF_ERROR(CheckIsNew(kKubernetesWords, plan, before));
  HPO_ASSIGN_OR_RETURN(const std::string kept, KeepFile(plan, "fleet.yaml", manifest));
  if (plan.server.HasSecret()) HPO_RETURN_IF_ERROR(KeepSecretInCluster(plan));
  // One of this name that has ended stays for a day.
  HPO_RETURN_IF_ERROR(Run({"delete", "job", FleetLabel(plan.name), "--ignore-not-found"}).status());
  HPO_RETURN_IF_ERROR(Run({"create", "-f", kept}).status());
  return SubmittedFleet{
      .id = "job/" + FleetLabel(plan.name), .kept = kept, .notes = NotesOnServer(plan)};
}

absl::StatusOr<std::vector<NamedWorker>> KubernetesEngine::List(const std::string& name) {
  const std::string label =
      name.empty() ? kManaged : absl::StrCat(kKubernetesLabel, "=", FleetLabel(name));
  HPO_ASSIGN_OR_RETURN(const std::string printed,
                       Run({"get", "jobs,pods", "-l", label, "-o", "json"}, kListPatience));
  return ParseKubernetesObjects(printed, SystemClock().Now());
}

absl::StatusOr<std::string> KubernetesEngine::HowItEnded(const std::string& name) {
  const std::string label = absl::StrCat(kKubernetesLabel, "=", FleetLabel(name));
  HPO_ASSIGN_OR_RETURN(const std::string printed,
                       Run({"get", "jobs", "-l", label, "-o", "json"}, kListPatience));
  const Json found = Json::parse(printed, nullptr, /*allow_exceptions=*/false);
  if (!found.is_object() || found.value("items", Json::array()).empty()) return "";
  return absl::StrCat("its job has ended; how: kubectl describe job ", FleetLabel(name),
                      "; its logs: kubectl logs -l ", label, " --prefix");
}

absl::StatusOr<std::string> KubernetesEngine::Scale(const std::string& name, int workers) {
  HPO_ASSIGN_OR_RETURN(const std::vector<NamedWorker> before, List(name));
  if (NumLive(before) == 0) return NoSuchFleet(kKubernetesWords, name);
  const std::string patch =
      absl::StrCat(R"({"spec":{"completions":)", workers, R"(,"parallelism":)", workers, "}}");
  HPO_RETURN_IF_ERROR(
      Run({"patch", "job", FleetLabel(name), "--type=merge", "-p", patch}).status());
  return ResizedText(NumLive(before), static_cast<size_t>(workers),
                     "those with the highest indices requeue their trials and end first");
}

absl::Status KubernetesEngine::Stop(const std::string& name, absl::Duration patience) {
  const std::string label = FleetLabel(name);
  HPO_RETURN_IF_ERROR(
      EndAll(*this, means_, kKubernetesWords, name, patience, [&](const auto& /*left*/) {
        return Run({"delete", "job", label, "--ignore-not-found", "--cascade=foreground",
                    "--wait=false"})
            .status();
      }));
  return Run({"delete", "secret", label, "--ignore-not-found"}).status();
}

}  // namespace hpo::cli
