// Saves what a trial has reached, and takes it up again in a later attempt: weights, optimizer,
// where the loop stands, and the best weights so far. On a CPU the continued training is the
// undisturbed one bit for bit.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/protocol/trainer_protocol.h"
#include "nlohmann/json.hpp"
#include "worker/channel/event_sink.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/checkpoints/checkpoint_store.h"
#include "worker/trainer/checkpoints/loop_state.h"
#include "worker/trainer/optimizers/optimizer.h"

namespace hpo::trainer {

// Not thread-safe. Nothing that goes wrong here ends a trial: what could not be saved or taken up
// is said, to the log and to the supervisor, and the training goes on.
class TrialCheckpoints {
 public:
  // What a checkpoint must match besides the job to be continued from: {"train_rows": 600, ...}.
  // All outlive the object. The best weights are in `job.output_dir`/best.
  TrialCheckpoints(const TrainerJob& job, nlohmann::json identity, torch::nn::Module& model,
                   Optimizer& optimizer, EventSink& events, const Clock& clock);

  // Fills model, optimizer and best folder from the newest checkpoint that is whole and of this
  // configuration; nullopt: there is none, nothing was changed, and an attempt after the first has
  // said so.
  std::optional<LoopState> Restore();

  // Whether a checkpoint after `step` steps is due, by the job's interval of steps or of time.
  bool Due(int64_t step) const;

  // Saves the model and optimizer as they are, and `state`. False: not saved. What is saved
  // already, or has no step behind it, is not written again.
  bool Save(const LoopState& state);

  // Removes checkpoints that nobody will continue from, and says so. False: there are none.
  bool MakeRoom();

  // How long the next Save may take: twice as long as the last one; before there is one, as long as
  // a slow disk takes for its bytes and those of the best weights.
  absl::Duration SaveTime() const;

 private:
  void TellRestart(const std::string& why);
  // "the one of step 100 is kept; training goes on"
  std::string WhatStays() const;
  absl::Status Fill(const LoopState& state, const std::string& folder) const;
  absl::StatusOr<LoopState> Load(const Checkpoint& checkpoint);

  const TrainerJob& job_;
  nlohmann::json identity_;
  torch::nn::Module& model_;
  Optimizer& optimizer_;
  EventSink& events_;
  const Clock& clock_;
  CheckpointStore store_;
  const Bytes size_;                // of a checkpoint's tensors
  std::optional<LoopState> saved_;  // the last one, or the one that was taken up
  std::optional<absl::Duration> last_took_;
  int64_t saved_step_ = 0;
  absl::Duration saved_at_;  // monotonic; at first when the attempt began
  bool failing_ = false;     // the last one was not saved, and that was said
};

}  // namespace hpo::trainer
