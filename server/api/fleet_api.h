// What people ask of the workers: which there are, and who gets no more trials.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/study/study_status.h"
#include "server/scheduler/trial_scheduler.h"

namespace hpo::server {

// Which workers a call is about: the named ones, or `all`.
struct WorkerChoice {
  std::vector<std::string> names;
  bool all = false;
};

// Thread-safe. fleet.proto says what the calls do; each returns the names that it was about.
class FleetApi {
 public:
  // `scheduler` outlives the api.
  explicit FleetApi(TrialScheduler& scheduler) : scheduler_(scheduler) {}

  // By name.
  std::vector<WorkerStatus> ListWorkers() const;

  // `now`: those that run a trial are told to save it and to give it back. Durable when it returns.
  //   NotFound         no worker of a name
  //   InvalidArgument  neither names nor all, or both
  //   Unavailable      Store::Write
  absl::StatusOr<std::vector<std::string>> DrainWorkers(const WorkerChoice& choice, bool now);
  absl::StatusOr<std::vector<std::string>> ResumeWorkers(const WorkerChoice& choice);

 private:
  absl::Status CheckKnown(const std::vector<std::string>& names) const;
  absl::Status PreemptTrialsOf(const std::vector<std::string>& names);

  TrialScheduler& scheduler_;
};

}  // namespace hpo::server
