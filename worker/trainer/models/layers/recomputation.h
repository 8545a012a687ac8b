// Gradient checkpointing: a piece of a model whose intermediate results are not kept for backward,
// which computes them again. Costs one more forward of the piece; saves what it would have kept but
// for its inputs.
// Source: Chen et al. 2016 (arXiv:1604.06174).
#pragma once

#include <functional>
#include <vector>

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// A function of its inputs, of parameters and of the device's random numbers. Called twice, the
// second time in backward with inputs that hold the same values: it may capture nothing that
// gradients flow through.
using Segment = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs)>;

// segment(inputs), one tensor. Where gradients are recorded, `inputs` are kept, and backward sets
// the random state to what it was and autocast to how it was, runs the segment again and then its
// backward: gradients reach the inputs that require them and every parameter, bit for bit as
// without this. `has_parameters`: the segment uses parameters that require gradients.
// The node that does so throws in backward what the segment throws; nothing stays allocated then
// (training/backward_barrier.h).
torch::Tensor RunRecomputed(Segment segment, std::vector<torch::Tensor> inputs,
                            bool has_parameters);

}  // namespace hpo::trainer
