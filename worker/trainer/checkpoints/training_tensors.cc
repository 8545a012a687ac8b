#include "worker/trainer/checkpoints/training_tensors.h"

#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "worker/trainer/models/files/safetensors.h"
#include "worker/trainer/models/files/safetensors_writer.h"
#include "worker/trainer/models/files/tensor_bytes.h"

namespace hpo::trainer {
namespace {

// What training changes; the rest is made again as it was.
std::vector<NamedTensor> TensorsOf(const torch::nn::Module& model, const Optimizer& optimizer) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    tensors.emplace_back("model." + item.key(), item.value());
  }
  for (auto& [name, tensor] : optimizer.State()) tensors.emplace_back("optimizer." + name, tensor);
  return tensors;
}

std::span<const int64_t> ShapeOf(const torch::Tensor& tensor) {
  return {tensor.sizes().data(), tensor.sizes().size()};
}

absl::Status CheckMatches(const NamedTensor& tensor, const SafetensorsFile& file) {
  HPO_ASSIGN_OR_RETURN(const TensorType type, FileTypeOf(tensor.second.scalar_type()));
  const TensorView* const view = file.Find(tensor.first);
  const std::string expected = absl::StrCat(Name(type), " ", FormatShape(ShapeOf(tensor.second)));
  const std::string found =
      view == nullptr ? "nothing" : absl::StrCat(Name(view->type), " ", FormatShape(view->shape));
  if (expected == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file.origin(), ": tensor '", tensor.first,
                                                 "': expected ", expected, ", found ", found));
}

}  // namespace

int64_t TrainingTensorBytes(const torch::nn::Module& model, const Optimizer& optimizer) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : TensorsOf(model, optimizer)) {
    bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return bytes;
}

int64_t WeightBytes(const torch::nn::Module& model) {
  int64_t elements = 0;
  for (const torch::Tensor& parameter : model.parameters()) elements += parameter.numel();
  return elements * static_cast<int64_t>(sizeof(float));
}

absl::Status SaveTrainingTensors(const torch::nn::Module& model, const Optimizer& optimizer,
                                 const std::string& path) {
  const torch::NoGradGuard no_grad;
  std::vector<TensorSource> sources;
  torch::Tensor on_host;  // the tensor being written
  for (const auto& [name, tensor] : TensorsOf(model, optimizer)) {
    HPO_ASSIGN_OR_RETURN(sources.emplace_back(),
                         SourceOf(name, tensor, tensor.scalar_type(), on_host));
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
  for (const auto& [name, tensor] : tensors) tensor.copy_(TensorOf(*file.Find(name)));
  return absl::OkStatus();
}

}  // namespace hpo::trainer
