#include "worker/trainer/models/layers/low_rank_adapter.h"

#include <cmath>

#include "worker/trainer/models/layers/base_storage.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {
namespace {

torch::Tensor NewWeight(torch::nn::Module& layer, const char* name, int64_t rows, int64_t columns,
                        torch::Device device) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device);
  return ModuleAt(layer, name).register_parameter("weight", at::empty({rows, columns}, options));
}

}  // namespace

LowRankAdapter::LowRankAdapter(torch::nn::Module& layer, const memory::AdaptedLayer& sizes,
                               const memory::LoraOptions& options, torch::Device device)
    : a_(NewWeight(layer, "lora_A", options.rank, sizes.inputs, device)),
      b_(NewWeight(layer, "lora_B", sizes.outputs, options.rank, device)),
      scale_(options.alpha / static_cast<double>(options.rank)),
      dropout_(options.dropout) {
  const torch::NoGradGuard no_grad;
  // He's uniform distribution with a slope of sqrt(5).
  const double bound = 1.0 / std::sqrt(static_cast<double>(sizes.inputs));
  a_.uniform_(-bound, bound);
  b_.zero_();
}

torch::Tensor LowRankAdapter::AddTo(const torch::Tensor& output, const torch::Tensor& input,
                                    bool training) const {
  torch::Tensor low = at::linear(Dropout(input, dropout_, training), a_);
  low = at::linear(low, b_);
  return at::add(output, low, scale_);
}

void LowRankAdapter::MergeInto(torch::Tensor weight) const {
  weight.addmm_(b_.to(torch::kCPU), a_.to(torch::kCPU), /*beta=*/1, /*alpha=*/scale_);
}

torch::Tensor AdaptableLayer::MakeWeight(at::IntArrayRef shape, torch::Device device) {
  stored_ = BaseStorageScope::MakeWeight(shape);
  if (stored_ != nullptr) return {};
  return register_parameter("weight", at::empty(shape, torch::TensorOptions(device)));
}

}  // namespace hpo::trainer
