#include "cli/fleet/engines/kubernetes_manifest.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/fleet/templates/fleet_templates.h"
#include "cli/fleet/templates/template_text.h"

namespace hpo::cli {
namespace {

constexpr char kSecretFolder[] = "/etc/hpo-join";

using Lines = std::vector<std::string>;

std::string Joined(const Lines& lines) { return absl::StrJoin(lines, "\n"); }

// As lines of a list. With lines of shell, bash runs them and becomes the worker.
std::string CommandOfPods(const FleetPlan& plan) {
  Lines lines;
  const auto add = [&lines](const std::string& word) { lines.push_back("- " + QuotedText(word)); };
  if (!plan.setup.empty()) {
    add("/bin/bash");
    add("-c");
    add(absl::StrCat(absl::StrJoin(plan.setup, "\n"), "\nexec \"$@\""));
    add("worker");
  }
  // In a container's command, $(NAME) is a variable, and $$ is $.
  for (const std::string& word : WorkerWords(plan, "hpo-worker")) add(word);
  return absl::StrReplaceAll(Joined(lines), {{"$(", "$$("}});
}

std::string ServerOfPods(const FleetPlan& plan) {
  if (plan.server.HasSecret()) {
    return absl::StrCat("- {name: HPO_JOIN_FILE, value: ", kSecretFolder, "/join}");
  }
  return absl::StrCat("- {name: HPO_SERVER, value: ", QuotedText(plan.server.address), "}");
}

std::string Resources(const FleetPlan& plan) {
  Lines amounts;
  if (plan.gpus_per_worker > 0) {
    amounts.push_back(absl::StrCat("nvidia.com/gpu: ", plan.gpus_per_worker));
  }
  if (plan.cpus_per_worker > 0) amounts.push_back(absl::StrCat("cpu: ", plan.cpus_per_worker));
  if (plan.memory_per_worker > Bytes{0}) {
    amounts.push_back(absl::StrCat("memory: ", plan.memory_per_worker.count >> 20, "Mi"));
  }
  if (amounts.empty()) return "";
  return absl::StrCat("resources:\n  limits:\n    ", absl::StrJoin(amounts, "\n    "));
}

// `of_pod`: the volumes of the pod, else where the container has them.
std::string Volumes(const FleetPlan& plan, bool of_pod) {
  Lines lines;
  if (plan.server.HasSecret()) {
    lines.push_back(
        of_pod ? absl::StrCat("- {name: join, secret: {secretName: ", FleetLabel(plan.name),
                              ", defaultMode: 0440}}")
               : absl::StrCat("- {name: join, mountPath: ", kSecretFolder, ", readOnly: true}"));
  }
  if (!plan.claim.empty()) {
    lines.push_back(of_pod ? absl::StrCat("- {name: shared, persistentVolumeClaim: {claimName: ",
                                          QuotedText(plan.claim), "}}")
                           : absl::StrCat("- {name: shared, mountPath: ", kSharedFolder, "}"));
  }
  if (plan.gpus_per_worker > 0) {  // workers of PyTorch programs share memory through it
    lines.push_back(of_pod ? "- {name: shm, emptyDir: {medium: Memory}}"
                           : "- {name: shm, mountPath: /dev/shm}");
  }
  if (lines.empty()) return "";
  return absl::StrCat(of_pod ? "volumes:\n  " : "volumeMounts:\n  ", absl::StrJoin(lines, "\n  "));
}

}  // namespace

std::string KubernetesManifest(const FleetPlan& plan) {
  const std::string label = FleetLabel(plan.name);
  const std::string type = QuotedText(plan.gpu_type);
  const bool is_queued = !plan.queue.empty();
  return FillTemplate(
      kKubernetesTemplate,
      {{"NAME", plan.name},
       {"LABEL", label},
       {"COMMAND", absl::StrReplaceAll(PlanCommand("kubernetes", plan), {{"\n", "\n#   "}})},
       {"WORKERS", absl::StrCat(plan.workers)},
       {"QUEUE_LABEL",
        is_queued ? "kueue.x-k8s.io/queue-name: " + QuotedText(plan.queue) : std::string()},
       {"SUSPEND", is_queued ? "suspend: true  # Kueue admits the fleet" : ""},
       {"DEADLINE", plan.time
                        ? absl::StrCat("activeDeadlineSeconds: ", absl::ToInt64Seconds(*plan.time),
                                       "  # then the fleet ends; trials are requeued")
                        : ""},
       {"NODES", plan.gpu_type.empty()
                     ? std::string()
                     : absl::StrCat("nodeSelector: {nvidia.com/gpu.product: ", type, "}")},
       {"IMAGE", QuotedText(plan.image)},
       {"WORKER", CommandOfPods(plan)},
       {"SERVER", ServerOfPods(plan)},
       {"RESOURCES", Resources(plan)},
       {"MOUNTS", Volumes(plan, /*of_pod=*/false)},
       {"VOLUMES", Volumes(plan, /*of_pod=*/true)}});
}

std::string KubernetesSecret(const FleetPlan& plan, absl::string_view secret) {
  const std::string label = FleetLabel(plan.name);
  return absl::StrCat(
      "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ", label,
      "\n  labels:\n    app.kubernetes.io/managed-by: hpo\n    ", kKubernetesLabel, ": ", label,
      "\ntype: Opaque\ndata:\n  join: ", absl::Base64Escape(absl::StrCat(secret, "\n")), "\n");
}

}  // namespace hpo::cli
