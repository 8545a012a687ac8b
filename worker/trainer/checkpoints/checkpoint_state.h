// What a checkpoint holds in addition to its tensors: the file state.json. Pure; free of torch.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "worker/trainer/checkpoints/loop_state.h"

namespace hpo::trainer {

struct CheckpointState {
  int64_t optimizer_steps = 0;
  LoopState loop;
  nlohmann::json identity;  // an object: what makes two attempts runs of one configuration
};

// One line of JSON with a newline.
std::string EncodeCheckpointState(const CheckpointState& state);

//   InvalidArgument     not JSON, or a member missing, of another type or out of range; names it
//   FailedPrecondition  another version
absl::StatusOr<CheckpointState> DecodeCheckpointState(absl::string_view text);

// Whether `found` has every member of `expected`.
//   FailedPrecondition  it has not; names the first that differs
absl::Status CheckIdentity(const nlohmann::json& found, const nlohmann::json& expected);

}  // namespace hpo::trainer
