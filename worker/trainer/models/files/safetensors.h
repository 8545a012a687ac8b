// Reader of the safetensors format: a length (8 bytes, little endian), a JSON header, then the
// tensors' bytes. Strict: a file that two readers could understand differently is refused.
// Free of torch; safe to share between threads once open.
// Source: github.com/huggingface/safetensors, README "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/files/mapped_file.h"

namespace hpo::trainer {

enum class TensorType {
  kFloat32,
  kFloat16,
  kBfloat16,
  kFloat64,
  kFloat8E4m3,
  kFloat8E5m2,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint8,
  kBool
};

// Whether parameters are read from it: not where 8 bits need scales that another tensor has.
bool IsFloat(TensorType type);

// Bytes of one element.
int64_t ElementSize(TensorType type);

// "F32", "F16", "BF16", "F8_E4M3", "I64", ...
absl::string_view Name(TensorType type);

// "[30522, 384]".
std::string FormatShape(std::span<const int64_t> shape);

// One tensor of an open file; row-major. `bytes` lives as long as the file is open and need not be
// aligned to the element size.
struct TensorView {
  TensorType type = TensorType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// A file mapped into memory, or bytes that the caller keeps. Movable.
class SafetensorsFile {
 public:
  static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

  // Maps `path` and checks all of it but the values.
  //   NotFound         no such file, or it cannot be read
  //   InvalidArgument  see Parse; the message starts with the path
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // The same over bytes in memory, which must outlive the result.
  //   InvalidArgument  truncated; header over 100 MB, not JSON, or with a key twice; a tensor with
  //                    an unknown dtype, a negative or overflowing shape, or offsets that do not
  //                    match its shape; tensors that overlap, leave a hole or end elsewhere than
  //                    the file. The message begins with `origin` and names the tensor and the
  //                    offset.
  static absl::StatusOr<SafetensorsFile> Parse(std::span<const std::byte> bytes,
                                               absl::string_view origin);

  // nullptr when there is no such tensor.
  const TensorView* Find(const std::string& name) const;

  // Takes `prefix`, with which the names of all tensors begin, from them.
  void RemovePrefix(absl::string_view prefix);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& origin() const { return origin_; }

 private:
  SafetensorsFile() = default;

  std::optional<MappedFile> mapping_;  // none for Parse
  std::string origin_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace hpo::trainer
