// The low-rank adapters of a classifier.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/models/model_spec.h"
#include "memory/trace/lora.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// Leaves the model under the head as it is and puts an adapter beside every layer that
// `options.targets` name; the head goes on being trained. `model`: a classifier of `shape`'s. An
// adapter's initial values depend on `seed` and its own position only.
//   InvalidArgument  as AdaptedLayers
// Throws c10::OutOfMemoryError when the adapters do not fit.
absl::Status AddAdapters(torch::nn::Module& model, const ModelShape& shape,
                         const memory::LoraOptions& options, uint64_t seed, torch::Device device);

}  // namespace hpo::trainer
