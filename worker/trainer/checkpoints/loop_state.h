// Where a training loop stands between two optimizer steps: with the weights and the optimizer's
// state, all that a later attempt needs to go on as if nothing had happened. Random streams are
// functions of seed and step (training/effective_batch.h), the order of the rows of seed and epoch,
// so neither is part of it. Free of torch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/study/trial.h"
#include "nlohmann/json_fwd.hpp"
#include "worker/trainer/optimizers/loss_scale.h"

namespace hpo::trainer {

struct LoopState {
  int64_t step = 0;          // optimizer steps done
  int64_t epoch = 0;         // the epoch that runs, from 0
  int64_t batches_done = 0;  // of it
  int64_t measured_step = -1;
  double loss_sum = 0.0;  // of the steps since the last measurement
  int64_t loss_steps = 0;
  std::optional<Metrics> best;
  bool best_kept = true;                  // its weights are the ones in the best folder
  std::vector<Measurement> measurements;  // all so far
  MemoryPlan plan;                        // in force,
  int64_t evaluation_rows = 0;            // and how many at a time in evaluation,
  Bytes limit;                            // under this limit; 0: none
  LossScale loss_scale;
  bool operator==(const LoopState&) const = default;
};

// Numbers keep every bit.
nlohmann::json LoopStateToJson(const LoopState& state);

//   InvalidArgument  a member missing, of another type or negative; names it
absl::StatusOr<LoopState> LoopStateFromJson(const nlohmann::json& json);

}  // namespace hpo::trainer
