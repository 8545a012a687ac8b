// Fleets as Indexed Jobs of Kubernetes, by kubectl and the context of its configuration.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/fleet/engines/fleet_engine.h"

namespace hpo::cli {

// Errors: see FleetEngine.
class KubernetesEngine final : public FleetEngine {
 public:
  explicit KubernetesEngine(EngineMeans means);

  std::string name() const override { return "kubernetes"; }
  absl::StatusOr<std::string> Script(const FleetPlan& plan) const override;
  absl::StatusOr<SubmittedFleet> Submit(const FleetPlan& plan) override;
  absl::StatusOr<std::vector<NamedWorker>> List(const std::string& name) override;
  absl::StatusOr<std::string> HowItEnded(const std::string& name) override;
  absl::StatusOr<std::string> Scale(const std::string& name, int workers) override;
  absl::Status Stop(const std::string& name, absl::Duration patience) override;

 private:
  // What kubectl printed.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& words,
                                  absl::Duration patience = absl::InfiniteDuration()) const;
  absl::Status KeepSecretInCluster(const FleetPlan& plan) const;

  const EngineMeans means_;
};

// The workers among what `kubectl get jobs,pods -o json` has printed: pods that have not ended, and
// each unfinished job that has no such pod as one worker that waits. Pure. `now`: for how long they
// run.
//   Internal  a text of another form
absl::StatusOr<std::vector<NamedWorker>> ParseKubernetesObjects(const std::string& printed,
                                                                absl::Time now);

}  // namespace hpo::cli
