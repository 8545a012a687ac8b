// The folder where a worker keeps what must outlive its process: results not yet told, trained
// models, what it knows of its data.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/agent/unique_fd.h"

namespace hpo {

struct StateFolder {
  std::string path;
  UniqueFd lock;  // held as long as the process lives, however it ends
};

// Opens the folder of the worker `name` below `root`, with the folders runs and data_facts in it.
// Nobody else may read it.
//   AlreadyExists       another process on this machine has it
//   FailedPrecondition  it cannot be made
absl::StatusOr<StateFolder> OpenStateFolder(const std::string& root, const std::string& name);

}  // namespace hpo
