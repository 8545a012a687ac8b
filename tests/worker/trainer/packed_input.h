// A padded batch without its padding, as training/batch_tensors makes one of a packed batch.
#pragma once

#include <vector>

#include "worker/trainer/models/backbone.h"

namespace hpo::trainer {

// `padded`: on the CPU, padding behind each row's tokens.
inline ModelInput PackInput(const ModelInput& padded) {
  std::vector<int64_t> lengths;
  std::vector<torch::Tensor> positions;
  std::vector<int32_t> offsets = {0};
  const torch::Tensor tokens = padded.mask.sum(1);
  for (int64_t row = 0; row < tokens.size(0); ++row) {
    lengths.push_back(tokens[row].item<int64_t>());
    positions.push_back(at::arange(lengths.back(), padded.ids.options()));
    offsets.push_back(offsets.back() + static_cast<int32_t>(lengths.back()));
  }
  const torch::Tensor real = padded.mask.to(torch::kBool);
  ModelInput input;
  input.ids = padded.ids.index({real}).unsqueeze(0);
  input.type_ids = padded.type_ids.index({real}).unsqueeze(0);
  input.packed = {.rows = PackRows(lengths),
                  .positions = at::cat(positions).unsqueeze(0),
                  .offsets = torch::tensor(offsets, torch::kInt32)};
  return input;
}

}  // namespace hpo::trainer
