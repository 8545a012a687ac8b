// The workers of a server, in values. Protobuf types stop here.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/study/study_status.h"

namespace hpo::cli {

class ServerConnection;

// Which workers a call is about: the named ones, or `all`.
struct WorkerChoice {
  std::vector<std::string> names;
  bool all = false;
};

// Thread-safe. Calls have a deadline. A server of an earlier version answers Unimplemented.
class FleetClient {
 public:
  // `connection` outlives it.
  explicit FleetClient(ServerConnection& connection) : connection_(connection) {}

  // By name.
  absl::StatusOr<std::vector<WorkerStatus>> ListWorkers();
  // The names that the call was about. `now`: those that run a trial give it back.
  absl::StatusOr<std::vector<std::string>> DrainWorkers(const WorkerChoice& choice, bool now);
  absl::StatusOr<std::vector<std::string>> ResumeWorkers(const WorkerChoice& choice);

 private:
  ServerConnection& connection_;
};

}  // namespace hpo::cli
