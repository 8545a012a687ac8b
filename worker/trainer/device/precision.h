// In which precision a device can train, and the process's switch for TF32.
#pragma once

#include "absl/status/status.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/data/training_options.h"

namespace hpo::trainer {

// Whether the device runs the trial in the precision asked for. fp32, bf16 and fp16 run on every
// device (on a CPU without such instructions slowly); tf32 on cards alone.
//   InvalidArgument  not so; says what to use
absl::Status CheckPrecision(const TrainingOptions& options, torch::Device device);

// Whether matrix products of float32 on a card may round their inputs to 10 bits of mantissa; of
// the whole process, from now on.
void AllowTf32(bool allowed);

}  // namespace hpo::trainer
