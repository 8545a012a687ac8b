// Fleets as jobs of Ray, by the Python module hpo.ray.jobs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/fleet/engines/fleet_engine.h"

namespace hpo::cli {

// Errors: see FleetEngine.
class RayEngine final : public FleetEngine {
 public:
  explicit RayEngine(EngineMeans means);

  std::string name() const override { return "ray"; }
  absl::StatusOr<std::string> Script(const FleetPlan& plan) const override;
  absl::StatusOr<SubmittedFleet> Submit(const FleetPlan& plan) override;
  absl::StatusOr<std::vector<NamedWorker>> List(const std::string& name) override;
  absl::StatusOr<std::string> HowItEnded(const std::string& name) override;
  absl::StatusOr<std::string> Scale(const std::string& name, int workers) override;
  absl::Status Stop(const std::string& name, absl::Duration patience) override;

 private:
  // What a command of hpo.ray.jobs printed.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& words,
                                  absl::Duration patience = absl::InfiniteDuration()) const;

  const EngineMeans means_;
};

// The workers that `hpo.ray.jobs list` has printed. Pure.
//   Internal  a text of another form
absl::StatusOr<std::vector<NamedWorker>> ParseRayWorkers(const std::string& printed);

}  // namespace hpo::cli
