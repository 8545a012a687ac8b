#include "worker/trainer/training/step_scalars.h"

#include <utility>

#include "common/base/status.h"

namespace hpo::trainer {

StepScalars::StepScalars(torch::Device device)
    : values_(at::empty({kCapacity, 2}, torch::TensorOptions(torch::kFloat32).device(device))) {}

void StepScalars::Add(const torch::Tensor& loss, const torch::Tensor& norm) {
  HPO_CHECK(!full());
  const torch::NoGradGuard no_grad;
  const torch::Tensor row = values_.select(0, size_++);
  row.select(0, 0).copy_(loss);
  row.select(0, 1).copy_(norm);
}

std::vector<StepScalars::Step> StepScalars::Take() {
  std::vector<Step> steps;
  if (size_ == 0) return steps;
  const torch::Tensor host = values_.narrow(0, 0, std::exchange(size_, 0)).to(torch::kCPU);
  const auto values = host.accessor<float, 2>();
  for (int64_t i = 0; i < values.size(0); ++i) {
    steps.push_back({.loss = values[i][0], .norm = values[i][1]});
  }
  return steps;
}

}  // namespace hpo::trainer
