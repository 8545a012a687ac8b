// The weight files of a model's folder: model.safetensors, or the shards that
// model.safetensors.index.json lists. Free of torch.
// Source: transformers' save_pretrained (max_shard_size).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/trainer/models/files/safetensors.h"

namespace hpo::trainer {

// Opens them all and checks that the shards hold what the index says, no more and no less.
//   NotFound         neither file is there, or a shard of the index is missing
//   InvalidArgument  a truncated or broken file (SafetensorsFile::Open); an index that is not JSON,
//                    has no weight_map, names a file outside the folder, or a tensor that its shard
//                    lacks. Names file and tensor.
absl::StatusOr<std::vector<SafetensorsFile>> OpenWeights(const std::string& folder);

}  // namespace hpo::trainer
