// Tensors to and from the bytes of safetensors files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/files/safetensors.h"
#include "worker/trainer/models/files/safetensors_writer.h"

namespace hpo::trainer {

//   Unimplemented  files hold no tensors of that type; names it
absl::StatusOr<TensorType> FileTypeOf(torch::ScalarType type);

// The view's tensor on the host, to be read only: over the view's own bytes, or over a copy where
// those are not aligned. Valid as long as the view.
torch::Tensor TensorOf(const TensorView& view);

// `tensor` as it is written in `type`. One tensor at a time is on the host: in `on_host`, which
// outlives the source.
//   Unimplemented  as FileTypeOf
absl::StatusOr<TensorSource> SourceOf(const std::string& name, const torch::Tensor& tensor,
                                      torch::ScalarType type, torch::Tensor& on_host);

}  // namespace hpo::trainer
