// Where the attempts of a trial leave their training state for one another: STUDY/TRIAL below one
// folder, which workers of several machines may share. One thread.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/bytes.h"
#include "common/ids.h"
#include "common/trainer_protocol.h"

namespace hpo {

struct CheckpointOptions {
  std::string root;  // empty: no checkpoints
  absl::Duration every = absl::Minutes(10);
  int64_t every_steps = 0;  // optimizer steps; 0: time alone counts
  Bytes quota;              // for each study; 0: none
};

class CheckpointFolders {
 public:
  explicit CheckpointFolders(CheckpointOptions options) : options_(std::move(options)) {}

  // What a trainer is told for an attempt of `trial`. Its folder exists; where it cannot be made
  // there is none, and the log says so.
  CheckpointSpec SpecOf(const TrialId& trial) const;

  // The trial is over: nobody will continue it.
  void Remove(const TrialId& trial) const;

 private:
  std::string FolderOf(const TrialId& trial) const;

  CheckpointOptions options_;
};

}  // namespace hpo
