#include "cli/fleet/engines/kubernetes_manifest.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/fleet/engines/engine_steps.h"
#include "cli/fleet/templates/fleet_templates.h"
#include "cli/fleet/templates/template_text.h"
#include "common/base/status.h"
#include "common/command_line/shell_word.h"

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

// How to create the Secret without --submit, as a comment.
std::string SecretCommand(const FleetPlan& plan) {
  if (!plan.server.HasSecret()) return "";
  const std::string& file = plan.server.join_file;
  const std::string create =
      absl::StrCat("kubectl create secret generic ", FleetLabel(plan.name), " --from-file=join=");
  return absl::StrCat(
      "# First create the Secret that the pods mount, in their namespace (--submit does so):\n#   ",
      file.empty() ? absl::StrCat("printf '%s\\n' \"$HPO_JOIN\" | ", create, "/dev/stdin")
                   : absl::StrCat(create, ShellWord(file)));
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

constexpr size_t kLongestLabelValue = 63;
constexpr size_t kLongestObjectName = 253;

bool IsSmallWord(absl::string_view text, absl::string_view signs) {
  return IsWord(text, signs) && absl::AsciiStrToLower(text) == text;
}

std::string InQuotes(absl::string_view text) { return absl::StrCat("'", text, "'"); }

// A DNS subdomain: small letters, digits, and '-' within the parts between its dots.
absl::Status CheckObjectName(absl::string_view option, absl::string_view name, size_t longest) {
  bool is_name = name.size() <= longest;
  for (const absl::string_view part : absl::StrSplit(name, '.')) {
    is_name = is_name && IsSmallWord(part, "-");
  }
  if (is_name) return absl::OkStatus();
  return Unexpected(
      option,
      absl::StrCat("small letters and digits, with '-' and '.' between them, at most ", longest,
                   " characters"),
      InQuotes(name));
}

// [HOST[:PORT]/]PATH[:TAG][@DIGEST].
bool IsImage(absl::string_view image) {
  const size_t at = image.find('@');
  if (at != absl::string_view::npos) {
    if (!IsWord(image.substr(at + 1), ":+._-")) return false;
    image = image.substr(0, at);
  }
  const size_t colon = image.rfind(':');
  const bool has_tag =
      colon != absl::string_view::npos && !absl::StrContains(image.substr(colon), "/");
  if (has_tag) {
    const absl::string_view tag = image.substr(colon + 1);
    if (tag.empty() || !std::all_of(tag.begin(), tag.end(), [](char c) {
          return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
                 c == '-';
        })) {
      return false;
    }
    image = image.substr(0, colon);
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(image, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_host = i == 0 && parts.size() > 1;
    if (is_host ? !IsWord(parts[i], ".-:") : !IsSmallWord(parts[i], "._-")) return false;
  }
  return true;
}

}  // namespace

absl::Status CheckKubernetesWords(const FleetPlan& plan) {
  if (!IsImage(plan.image)) {
    return Unexpected("--image", "the name of an image, such as registry/hpo:1",
                      InQuotes(plan.image));
  }
  if (!plan.queue.empty()) {
    HPO_RETURN_IF_ERROR(CheckObjectName("--queue", plan.queue, kLongestLabelValue));
  }
  if (!plan.claim.empty()) {
    HPO_RETURN_IF_ERROR(CheckObjectName("--claim", plan.claim, kLongestObjectName));
  }
  const bool is_label_value =
      plan.gpu_type.size() <= kLongestLabelValue && IsWord(plan.gpu_type, "-_.");
  if (plan.gpu_type.empty() || is_label_value) return absl::OkStatus();
  return Unexpected("--gpu-type",
                    "a value of the label nvidia.com/gpu.product, such as NVIDIA-A100-SXM4-80GB",
                    InQuotes(plan.gpu_type));
}

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
       {"SIZE", WorkersText(static_cast<size_t>(plan.workers))},
       {"SECRET", SecretCommand(plan)},
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
