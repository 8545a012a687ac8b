// Fleets as Slurm's job arrays, by sbatch, squeue, scontrol and scancel.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/fleet/engines/fleet_engine.h"

namespace hpo::cli {

// Errors: see FleetEngine.
class SlurmEngine final : public FleetEngine {
 public:
  // `worker_program`: the path of hpo-worker, the same on all nodes.
  SlurmEngine(EngineMeans means, std::string worker_program, std::string user);

  std::string name() const override { return "slurm"; }
  absl::StatusOr<std::string> Script(const FleetPlan& plan) const override;
  absl::StatusOr<SubmittedFleet> Submit(const FleetPlan& plan) override;
  absl::StatusOr<std::vector<NamedWorker>> List(const std::string& name) override;
  absl::StatusOr<std::string> HowItEnded(const std::string& name) override;
  absl::StatusOr<std::string> Scale(const std::string& name, int workers) override;
  absl::Status Stop(const std::string& name, absl::Duration patience) override;

 private:
  // What it printed.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& words,
                                  absl::Duration patience = absl::InfiniteDuration()) const;
  absl::StatusOr<std::vector<NamedWorker>> ListKnown(const std::string& name);
  absl::Status Grow(const std::vector<NamedWorker>& workers, size_t more);
  absl::Status Rejected(const FleetPlan& plan, const absl::Status& why) const;

  const EngineMeans means_;
  const std::string worker_program_;
  const std::string user_;
};

}  // namespace hpo::cli
