// The manifests of a fleet on Kubernetes. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/fleet/engines/fleet_plan.h"

namespace hpo::cli {

// The label by which all objects of a fleet are found, with its value's prefix "hpo-".
inline constexpr char kKubernetesLabel[] = "app.kubernetes.io/instance";

// An Indexed Job with one pod for each worker. A pod is made again if its worker leaves with work
// left (75) or is disrupted, at most five times for other errors, and never for wrong options (78).
// Sources: Kubernetes' batch/v1 Job; common/command_line/exit_status.h.
std::string KubernetesManifest(const FleetPlan& plan);

// Whether the image, queue, claim and the value of a node's label are such that Kubernetes takes
// them. Sources: Kubernetes, "Object Names and IDs", "Labels and Selectors";
// distribution/reference.
//   InvalidArgument  with what was expected
absl::Status CheckKubernetesWords(const FleetPlan& plan);

// The Secret that the pods of this fleet mount: a manifest that holds the secret.
std::string KubernetesSecret(const FleetPlan& plan, absl::string_view secret);

}  // namespace hpo::cli
