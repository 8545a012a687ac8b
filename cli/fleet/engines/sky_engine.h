// Fleets as managed jobs of SkyPilot, by the program sky.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/fleet/engines/fleet_engine.h"

namespace hpo::cli {

// The jobs of a fleet are hpo-NAME-0, hpo-NAME-1, ... What a fleet grows by comes from the file
// that its submission has kept on this machine. Errors: see FleetEngine.
class SkyEngine final : public FleetEngine {
 public:
  explicit SkyEngine(EngineMeans means);

  std::string name() const override { return "sky"; }
  absl::StatusOr<std::string> Script(const FleetPlan& plan) const override;
  absl::StatusOr<SubmittedFleet> Submit(const FleetPlan& plan) override;
  absl::StatusOr<std::vector<NamedWorker>> List(const std::string& name) override;
  absl::StatusOr<std::string> HowItEnded(const std::string& name) override;
  absl::StatusOr<std::string> Scale(const std::string& name, int workers) override;
  absl::Status Stop(const std::string& name, absl::Duration patience) override;

 private:
  // What sky printed.
  absl::StatusOr<std::string> Run(const std::vector<std::string>& words,
                                  absl::Duration patience = absl::InfiniteDuration()) const;
  // Launches `more` jobs whose numbers are not among `workers`, from the files in `folder`.
  absl::Status Launch(const std::string& name, const std::string& folder,
                      const std::vector<NamedWorker>& workers, size_t more) const;
  absl::Status Cancel(std::vector<std::string> ids) const;

  const EngineMeans means_;
};

// The jobs of fleets that have not ended, among what `sky jobs queue --output json` has printed.
// Their ids are "NUMBER NAME": SkyPilot's number of the job, and its name. Pure.
//   Internal  a text of another form
absl::StatusOr<std::vector<NamedWorker>> ParseSkyJobs(const std::string& printed);

}  // namespace hpo::cli
