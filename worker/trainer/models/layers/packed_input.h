// Rows of a batch as the model takes them without padding.
#pragma once

#include "common/models/packed_rows.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// One behind the other in the place of a single row. On the model's device but for `rows`, which
// nothing has to wait for.
struct PackedInput {
  PackedRows rows;          // empty: the batch is padded
  torch::Tensor positions;  // [1, tokens] int64: of each token in its row, from 0
  torch::Tensor offsets;    // [rows + 1] int32: where each row begins, and where the last ends

  explicit operator bool() const { return !rows.empty(); }
};

}  // namespace hpo::trainer
