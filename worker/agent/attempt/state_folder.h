// The folder where a worker keeps what must outlive its process: results not yet told, trained
// models, what it knows of its data.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/agent/process/unique_fd.h"

namespace hpo::agent {

// What a worker that was given no name is called: the host, and what of it the worker uses. Two
// hosts of one name (containers) are told apart by the rest.
//   `card_uuid` not empty  "host:GPU-8f0c2f5e": the beginning of the card's UUID
//   else                   "host:cpu-3b9d01aa": an id that `root` keeps, made where it has none
//   FailedPrecondition     `root` cannot be made or written
//   Unavailable            the same, and it may pass (MayPass in read_file.h)
absl::StatusOr<std::string> DefaultWorkerName(const std::string& host, const std::string& card_uuid,
                                              const std::string& root);

struct StateFolder {
  std::string path;
  UniqueFd lock;  // held as long as the process lives, however it ends
};

// Opens the folder of the worker `name` below `root`, with the folders runs and data_facts in it.
// Nobody else may read it.
//   AlreadyExists       another process on this machine has it
//   FailedPrecondition  it cannot be made or locked
//   Unavailable         the same, and it may pass
absl::StatusOr<StateFolder> OpenStateFolder(const std::string& root, const std::string& name);

// Leaves `instance_key`, of the process that has registered from here, in `path` for the next one
// to tell (CoordinatorClient::RegisterWorker); without it that one has its name only after a wait.
// An empty path: nowhere.
void RememberInstance(const std::string& path, const std::string& instance_key);

}  // namespace hpo::agent
