// Dropout on a CPU, in one pass on all threads. Torch's draws its mask on one thread and then
// multiplies twice: a tenth of a training step.
#pragma once

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// Zeroes each element with `probability`, in [0, 1), and scales the others by
// 1 / (1 - probability). `input`: of a floating type, on a CPU. Result: contiguous, as input.
// Which elements: a function of one draw from the CPU's default generator and of their number, the
// same for any number of threads. Keeps a mask of one byte per element for backward.
torch::Tensor CpuDropout(const torch::Tensor& input, double probability);

}  // namespace hpo::trainer
