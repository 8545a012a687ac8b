// The trained parameters of a model, and what happens to their gradients between backward and the
// optimizer's step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// Parameters that share a weight decay.
struct ParameterGroup {
  std::vector<std::string> names;  // of each parameter, as the model registers it
  std::vector<torch::Tensor> parameters;
  double weight_decay = 0.0;
};

// Two groups of what requires gradients: matrices decay by `weight_decay`; vectors, which
// are biases and the weights of norms, do not.
std::vector<ParameterGroup> DecayGroups(const torch::nn::Module& model, double weight_decay);

// The gradient of each parameter, all of which must be defined.
std::vector<torch::Tensor> GradientsOf(const ParameterGroup& group);

// Frees every gradient.
void ClearGradients(std::span<const ParameterGroup> groups);

// Divides all gradients, which must be defined, by `loss_scale` and scales them so that their joint
// 2-norm is at most `max_norm` (> 0; infinity: only measures). Returns the norm before the second.
// Where that is not finite, gradients stay as they are. May allocate a few kilobytes; changes no
// parameter.
double ClipGradients(std::span<const ParameterGroup> groups, double max_norm,
                     double loss_scale = 1.0);

// The same without a loss scale and without reading the norm, a float32 scalar on the device: waits
// for nothing. Where it is not finite, gradients are not either.
torch::Tensor ClipGradientsUnread(std::span<const ParameterGroup> groups, double max_norm);

}  // namespace hpo::trainer
