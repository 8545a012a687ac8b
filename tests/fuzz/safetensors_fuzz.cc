// Any bytes as a .safetensors file: an error, or tensors that tile the file exactly.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/status.h"
#include "worker/trainer/models/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = hpo::trainer::SafetensorsFile::Parse(bytes, "fuzz");
  if (!file.ok()) {
    HPO_CHECK(file.status().message().substr(0, 5) == "fuzz:");
    return 0;
  }
  size_t total = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    auto elements =
        static_cast<int64_t>(tensor.bytes.size()) / hpo::trainer::ElementSize(tensor.type);
    for (const int64_t dimension : tensor.shape) {
      HPO_CHECK(dimension >= 0);
      if (dimension == 0) HPO_CHECK(elements == 0);
    }
    HPO_CHECK(tensor.bytes.data() >= bytes.data());
    HPO_CHECK(tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + bytes.size());
    HPO_CHECK(file->Find(name) == &tensor);
    total += tensor.bytes.size();
  }
  HPO_CHECK(total <= size);
  return 0;
}
