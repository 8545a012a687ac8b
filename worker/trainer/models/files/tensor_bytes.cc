#include "worker/trainer/models/files/tensor_bytes.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::trainer {
namespace {

constexpr std::array<std::pair<TensorType, torch::ScalarType>, 6> kTypes = {
    {{TensorType::kFloat32, torch::kFloat32},
     {TensorType::kFloat16, torch::kFloat16},
     {TensorType::kBfloat16, torch::kBFloat16},
     {TensorType::kFloat64, torch::kFloat64},
     {TensorType::kInt64, torch::kInt64},
     {TensorType::kUint8, torch::kUInt8}}};

torch::ScalarType ScalarTypeOf(TensorType type) {
  for (const auto& [in_file, scalar] : kTypes) {
    if (in_file == type) return scalar;
  }
  HPO_CHECK(false);
  return torch::kFloat32;
}

}  // namespace

absl::StatusOr<TensorType> FileTypeOf(torch::ScalarType type) {
  for (const auto& [in_file, scalar] : kTypes) {
    if (scalar == type) return in_file;
  }
  return absl::UnimplementedError(
      absl::StrCat("no file holds a tensor of type ", c10::toString(type)));
}

torch::Tensor TensorOf(const TensorView& view) {
  const auto options = torch::TensorOptions(ScalarTypeOf(view.type));
  const auto address = reinterpret_cast<uintptr_t>(view.bytes.data());
  if (address % static_cast<uintptr_t>(ElementSize(view.type)) == 0) {
    // from_blob takes no pointer to const; nothing is written.
    return at::from_blob(const_cast<std::byte*>(view.bytes.data()), view.shape, options);
  }
  const auto aligned =
      std::make_shared<std::vector<std::byte>>(view.bytes.begin(), view.bytes.end());
  return at::from_blob(
      aligned->data(), view.shape, [aligned](void*) {}, options);
}

absl::StatusOr<TensorSource> SourceOf(const std::string& name, const torch::Tensor& tensor,
                                      torch::ScalarType type, torch::Tensor& on_host) {
  const absl::StatusOr<TensorType> in_file = FileTypeOf(type);
  if (!in_file.ok()) return Annotate(in_file.status(), absl::StrCat("tensor '", name, "'"));
  return TensorSource{
      name, *in_file, tensor.sizes().vec(),
      [tensor, type, &on_host]() -> std::span<const std::byte> {
        on_host = tensor.to(torch::kCPU, type).contiguous();
        return {static_cast<const std::byte*>(on_host.const_data_ptr()), on_host.nbytes()};
      }};
}

}  // namespace hpo::trainer
