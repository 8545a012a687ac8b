#include "worker/trainer/models/files/safetensors_writer.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/write_file.h"
#include "nlohmann/json.hpp"

namespace hpo::trainer {
namespace {

absl::StatusOr<std::string> BuildHeader(const std::string& path,
                                        std::span<const TensorSource> tensors,
                                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string> names;
  int64_t offset = 0;
  for (const TensorSource& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor '", tensor.name, "' given twice"));
    }
    int64_t size = ElementSize(tensor.type);
    for (const int64_t dimension : tensor.shape) {
      if (dimension < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": tensor '", tensor.name, "': shape ", FormatShape(tensor.shape)));
      }
      size *= dimension;
    }
    header[tensor.name] = {{"dtype", std::string(Name(tensor.type))},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors start on a multiple of 8
  return text;
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, std::span<const TensorSource> tensors,
                              const std::map<std::string, std::string>& metadata) {
  HPO_ASSIGN_OR_RETURN(const std::string header, BuildHeader(path, tensors, metadata));
  DurableFile file(path);
  HPO_RETURN_IF_ERROR(file.Create());
  unsigned char length[8];
  for (size_t i = 0; i < sizeof(length); ++i) {
    length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
  }
  HPO_RETURN_IF_ERROR(file.Write(length, sizeof(length)));
  HPO_RETURN_IF_ERROR(file.Write(header.data(), header.size()));
  for (const TensorSource& tensor : tensors) {
    const std::span<const std::byte> bytes = tensor.bytes();
    int64_t expected = ElementSize(tensor.type);
    for (const int64_t dimension : tensor.shape) expected *= dimension;
    if (static_cast<int64_t>(bytes.size()) != expected) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor '", tensor.name, "': expected ", expected, " bytes, got ", bytes.size()));
    }
    HPO_RETURN_IF_ERROR(file.Write(bytes.data(), bytes.size()));
  }
  return file.Commit();
}

}  // namespace hpo::trainer
