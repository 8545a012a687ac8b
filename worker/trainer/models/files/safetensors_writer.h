// Writer of the safetensors format (see safetensors.h). Free of torch.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/trainer/models/files/safetensors.h"

namespace hpo::trainer {

// A tensor to write. `bytes` is asked for when its turn comes, so that one tensor at a time need be
// on the host; the span must stay valid until the next call.
struct TensorSource {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<int64_t> shape;
  std::function<std::span<const std::byte>()> bytes;
};

// Writes `tensors` in their order under a temporary name beside `path`, flushes to disk, then
// renames: `path` is the old file or the whole new one, never a part.
//   InvalidArgument  a name twice, a negative dimension, or bytes that do not match the shape
//   NotFound, PermissionDenied, ResourceExhausted, Unavailable  see FileError
//   (common/files/read_file.h)
absl::Status WriteSafetensors(const std::string& path, std::span<const TensorSource> tensors,
                              const std::map<std::string, std::string>& metadata);

}  // namespace hpo::trainer
