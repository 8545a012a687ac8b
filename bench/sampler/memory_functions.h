// Objectives whose configurations need memory.
#pragma once

#include "bench/sampler/problem.h"

namespace hpo {

// The memory cliff: a network's width, depth, batch and learning rate; the optimum lies on the
// limit of 1.6 GiB, 40 % of the space beyond it.
SamplerProblem MemoryCliff(SamplerProblem::Memory memory);

// Fine-tuning a transformer of width 256 to 2048 and 4 to 32 layers in 512 steps of `batch` texts.
//   Memory: 16 bytes a parameter (12 * depth * width^2 of them), 34 * depth * width bytes a token
//   kept for backward, and 1 GiB; known. A third of the space fits 8 GB, two thirds 24 GB, all
//   but a twentieth 80 GB. Time: six operations a parameter and token at 20 * 10^12 a second on a
//   card of speed 1, and a minute to start. Loss: falls with width and depth by powers, as scaling
//   laws do; the learning rate has its best value, lower for wider models, batch and dropout have
//   theirs. The optimum needs more than 24 GB.
SamplerProblem FleetProblem();

}  // namespace hpo
