#include "worker/trainer/checkpoints/training_tensors.h"

#include <cstring>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/trainer/models/safetensors.h"
#include "worker/trainer/models/safetensors_writer.h"

namespace hpo {
namespace {

std::vector<NamedTensor> TensorsOf(const torch::nn::Module& model, const Optimizer& optimizer) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_parameters()) {
    tensors.emplace_back("model." + item.key(), item.value());
  }
  for (auto& [name, tensor] : optimizer.State()) tensors.emplace_back("optimizer." + name, tensor);
  return tensors;
}

absl::StatusOr<TensorType> TypeOf(const NamedTensor& tensor) {
  switch (tensor.second.scalar_type()) {
    case torch::kFloat32:
      return TensorType::kFloat32;
    case torch::kFloat16:
      return TensorType::kFloat16;
    case torch::kBFloat16:
      return TensorType::kBfloat16;
    case torch::kInt64:
      return TensorType::kInt64;
    case torch::kUInt8:
      return TensorType::kUint8;
    default:
      return absl::UnimplementedError(absl::StrCat("tensor '", tensor.first,
                                                   "': no file holds a tensor of type ",
                                                   c10::toString(tensor.second.scalar_type())));
  }
}

std::span<const int64_t> ShapeOf(const torch::Tensor& tensor) {
  return {tensor.sizes().data(), tensor.sizes().size()};
}

absl::Status CheckMatches(const NamedTensor& tensor, const SafetensorsFile& file) {
  HPO_ASSIGN_OR_RETURN(const TensorType type, TypeOf(tensor));
  const TensorView* const view = file.Find(tensor.first);
  const std::string expected = absl::StrCat(Name(type), " ", FormatShape(ShapeOf(tensor.second)));
  const std::string found =
      view == nullptr ? "nothing" : absl::StrCat(Name(view->type), " ", FormatShape(view->shape));
  if (expected == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file.origin(), ": tensor '", tensor.first,
                                                 "': expected ", expected, ", found ", found));
}

// The view has the tensor's type and shape. Bytes in a file need not be aligned.
void Fill(torch::Tensor tensor, const TensorView& view) {
  const auto address = reinterpret_cast<uintptr_t>(view.bytes.data());
  const auto options = torch::TensorOptions(tensor.scalar_type());
  std::vector<std::byte> aligned;
  const std::byte* bytes = view.bytes.data();
  if (address % static_cast<uintptr_t>(ElementSize(view.type)) != 0) {
    aligned.assign(view.bytes.begin(), view.bytes.end());
    bytes = aligned.data();
  }
  // from_blob takes no pointer to const; nothing is written.
  tensor.copy_(at::from_blob(const_cast<std::byte*>(bytes), tensor.sizes(), options));
}

}  // namespace

int64_t TrainingTensorBytes(const torch::nn::Module& model, const Optimizer& optimizer) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : TensorsOf(model, optimizer)) {
    bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return bytes;
}

absl::Status SaveTrainingTensors(const torch::nn::Module& model, const Optimizer& optimizer,
                                 const std::string& path) {
  const torch::NoGradGuard no_grad;
  std::vector<TensorSource> sources;
  torch::Tensor on_host;  // the tensor being written
  for (const NamedTensor& named : TensorsOf(model, optimizer)) {
    HPO_ASSIGN_OR_RETURN(const TensorType type, TypeOf(named));
    const torch::Tensor tensor = named.second;
    sources.push_back(
        {named.first, type, tensor.sizes().vec(),
         [tensor, &on_host]() -> std::span<const std::byte> {
           on_host = tensor.to(torch::kCPU).contiguous();
           return {static_cast<const std::byte*>(on_host.const_data_ptr()), on_host.nbytes()};
         }});
  }
  return WriteSafetensors(path, sources, {});
}

absl::Status LoadTrainingTensors(torch::nn::Module& model, Optimizer& optimizer,
                                 const std::string& path) {
  const torch::NoGradGuard no_grad;
  HPO_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  const std::vector<NamedTensor> tensors = TensorsOf(model, optimizer);
  for (const NamedTensor& tensor : tensors) HPO_RETURN_IF_ERROR(CheckMatches(tensor, file));
  if (file.tensors().size() != tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected ", tensors.size(),
                                                   " tensors, found ", file.tensors().size()));
  }
  for (const auto& [name, tensor] : tensors) Fill(tensor, *file.Find(name));
  return absl::OkStatus();
}

}  // namespace hpo
