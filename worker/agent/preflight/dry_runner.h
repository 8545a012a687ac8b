// One dry run, from the server's question to the report.
#pragma once

#include <memory>
#include <optional>

#include "common/protocol/preflight.h"
#include "worker/agent/catalog/data_catalog.h"
#include "worker/agent/catalog/model_catalog.h"
#include "worker/agent/preflight/dry_run_setup.h"
#include "worker/agent/preflight/stop_wait.h"

namespace hpo::agent {

class DryRunner {
 public:
  virtual ~DryRunner() = default;

  // Never fails: what cannot be dry-run is a report that says why. nullopt: it was ended by `stop`.
  // One thread, which lives as long as the run.
  virtual std::optional<PreflightReport> Run(const Preflight& preflight, const StopWait& stop) = 0;
};

// Runs hpo_dryrun as a child process. All that it has started ends with it, with the worker, and
// after the time limit. The log tells what it found.
class ProcessDryRunner final : public DryRunner {
 public:
  // `device` is the worker's. The catalogs outlive the runner.
  ProcessDryRunner(DryRunOptions options, DeviceProfile device, const ModelCatalog& models,
                   const DataCatalog& data)
      : options_(std::move(options)), device_(std::move(device)), models_(models), data_(data) {}

  std::optional<PreflightReport> Run(const Preflight& preflight, const StopWait& stop) override;

  // Beyond DryRunOptions::timeout, which is of one run of the program: one that asks how much
  // memory is free runs twice.
  static constexpr absl::Duration kExtraTime = absl::Seconds(20);
  // From the wish to end until it is killed.
  static constexpr absl::Duration kEndingTime = absl::Seconds(2);

 private:
  std::optional<PreflightReport> RunInTurn(const Preflight& preflight, const StopWait& stop) const;
  // nullopt: ended by `stop`.
  std::optional<PreflightReport> Await(const Preflight& preflight,
                                       const std::vector<DeviceProfile>& gpus,
                                       TrainerProcess& process, const StopWait& stop) const;

  const DryRunOptions options_;
  const DeviceProfile device_;
  const ModelCatalog& models_;
  const DataCatalog& data_;
};

}  // namespace hpo::agent
