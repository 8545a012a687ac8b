// Where the attempts of a trial leave their training state for one another: DATABASE/STUDY/TRIAL
// below one folder, which workers of several machines may share. Studies of one name in two
// databases have nothing to do with each other. One thread.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/protocol/trainer_protocol.h"
#include "common/protocol/worker_exchange.h"

namespace hpo::agent {

struct CheckpointOptions {
  std::string root;  // empty: no checkpoints
  absl::Duration every = absl::Minutes(10);
  int64_t every_steps = 0;  // optimizer steps; 0: time alone counts
  Bytes quota;              // for each study; 0: none
};

class CheckpointFolders {
 public:
  explicit CheckpointFolders(CheckpointOptions options) : options_(std::move(options)) {}

  // What a trainer is told for the attempt of `lease`. Its folder exists; where it cannot be made
  // there is none, and the log says so.
  CheckpointSpec SpecOf(const LeaseRef& lease) const;

  // The trial of `lease` is over: nobody will continue it.
  void Remove(const LeaseRef& lease) const;

 private:
  std::string FolderOf(const LeaseRef& lease) const;

  CheckpointOptions options_;
};

}  // namespace hpo::agent
