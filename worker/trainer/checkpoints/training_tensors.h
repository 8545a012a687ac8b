// The tensors of a training state as a safetensors file: a model's parameters and its optimizer's
// state, each in the type it has.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/optimizers/optimizer.h"

namespace hpo::trainer {

// Bytes of what SaveTrainingTensors writes, but for the header.
int64_t TrainingTensorBytes(const torch::nn::Module& model, const Optimizer& optimizer);

// What all of the model takes as the best weights are written.
int64_t WeightBytes(const torch::nn::Module& model);

// Writes "model.<parameter>" and "optimizer.<state>", durably; one tensor at a time is copied to
// the host. Codes: see WriteSafetensors.
absl::Status SaveTrainingTensors(const torch::nn::Module& model, const Optimizer& optimizer,
                                 const std::string& path);

// Fills both from the file; either all of it or, with an error, nothing.
//   NotFound         no such file
//   InvalidArgument  the file's tensors are not those of this model and optimizer; names the first
absl::Status LoadTrainingTensors(torch::nn::Module& model, Optimizer& optimizer,
                                 const std::string& path);

}  // namespace hpo::trainer
