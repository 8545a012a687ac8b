// Tested by tests/worker/trainer/techniques_test.cc.
#include "worker/trainer/optimizers/adamw_8bit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"

namespace hpo::trainer {

AdamW8bit::AdamW8bit(std::vector<ParameterGroup> groups, const AdamWOptions& options)
    : groups_(std::move(groups)), options_(options) {
  const torch::NoGradGuard no_grad;
  std::vector<ParameterGroup> small;
  int64_t most_elements = 0;
  torch::Device device = torch::kCPU;
  for (const ParameterGroup& group : groups_) {
    ParameterGroup own{.names = {}, .parameters = {}, .weight_decay = group.weight_decay};
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const torch::Tensor& parameter = group.parameters[i];
      if (parameter.numel() < memory::kLeastQuantized) {
        own.names.push_back(group.names[i]);
        own.parameters.push_back(parameter);
        continue;
      }
      most_elements = std::max(most_elements, parameter.numel());
      device = parameter.device();
      large_.push_back({.name = group.names[i],
                        .parameter = parameter,
                        .weight_decay = group.weight_decay,
                        .first = {},
                        .second = {}});
    }
    if (!own.parameters.empty()) small.push_back(std::move(own));
  }
  if (!small.empty()) small_.emplace(std::move(small), options_);
  if (large_.empty()) return;
  AllocateScratch(most_elements, device);
  for (Quantized& state : large_) {
    state.first = QuantizedZeros(state.parameter.numel(), signed_code_);
    state.second = QuantizedZeros(state.parameter.numel(), unsigned_code_);
  }
}

void AdamW8bit::AllocateScratch(int64_t elements, torch::Device device) {
  const auto float32 = torch::TensorOptions(torch::kFloat32).device(device);
  signed_code_ =
      MakeDynamicCode(/*is_signed=*/true, at::empty({memory::kDynamicCodeFloats}, float32));
  unsigned_code_ =
      MakeDynamicCode(/*is_signed=*/false, at::empty({memory::kDynamicCodeFloats}, float32));
  const int64_t size = memory::QuantizedPiece(elements);
  first_ = at::empty({size}, float32);
  second_ = at::empty({size}, float32);
  denominator_ = at::empty({size}, float32);
  indices_ = at::empty({size}, float32.dtype(torch::kInt32));
  const torch::Tensor scalars = at::empty({4}, float32);
  int64_t next = 0;
  for (torch::Tensor* scalar : {&kept_second_, &correction_, &epsilon_, &kept_weight_}) {
    *scalar = scalars.select(0, next++);
  }
  kept_second_.fill_(options_.beta2);
  epsilon_.fill_(options_.eps);
}

void AdamW8bit::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  ++num_steps_;
  if (small_.has_value()) small_->Step(learning_rate);
  if (large_.empty()) return;
  correction_.fill_(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, num_steps_)));
  for (const Quantized& state : large_) {
    const int64_t elements = state.parameter.numel();
    const int64_t at_once = first_.numel();
    kept_weight_.fill_(1.0 - learning_rate * state.weight_decay);
    for (int64_t begin = 0; begin < elements; begin += at_once) {
      UpdatePiece(state, begin / memory::kQuantizationBlock, std::min(at_once, elements - begin),
                  learning_rate);
    }
  }
}

void AdamW8bit::UpdatePiece(const Quantized& state, int64_t first_block, int64_t count,
                            double learning_rate) {
  const torch::Tensor& gradient = state.parameter.grad();
  HPO_CHECK(gradient.defined());
  const int64_t begin = first_block * memory::kQuantizationBlock;
  const torch::Tensor g = gradient.view(-1).narrow(0, begin, count);
  torch::Tensor p = state.parameter.view(-1).narrow(0, begin, count);
  const int64_t padded = memory::RoundUpToBlock(count);
  const torch::Tensor indices = indices_.narrow(0, 0, padded);
  const torch::Tensor first = first_.narrow(0, 0, padded);
  const torch::Tensor second = second_.narrow(0, 0, padded);
  Decode(state.first, first_block, signed_code_, indices, first);
  Decode(state.second, first_block, unsigned_code_, indices, second);

  torch::Tensor m = first.narrow(0, 0, count);
  torch::Tensor v = second.narrow(0, 0, count);
  torch::Tensor denominator = denominator_.narrow(0, 0, count);
  m.lerp_(g, 1.0 - options_.beta1);
  v.mul_(kept_second_).addcmul_(g, g, 1.0 - options_.beta2);
  at::sqrt_out(denominator, v).mul_(correction_).add_(epsilon_);
  p.mul_(kept_weight_);
  p.addcdiv_(m, denominator, -learning_rate / (1.0 - std::pow(options_.beta1, num_steps_)));

  const torch::Tensor scratch = denominator_.narrow(0, 0, padded);
  Encode(first, signed_code_, indices, scratch, state.first, first_block);
  Encode(second, unsigned_code_, indices, scratch, state.second, first_block);
}

std::vector<NamedTensor> AdamW8bit::State() const {
  std::vector<NamedTensor> state;
  if (small_.has_value()) state = small_->State();
  for (const Quantized& large : large_) {
    state.emplace_back(large.name + ".exp_avg.codes", large.first.codes);
    state.emplace_back(large.name + ".exp_avg.scales", large.first.scales);
    state.emplace_back(large.name + ".exp_avg_sq.codes", large.second.codes);
    state.emplace_back(large.name + ".exp_avg_sq.scales", large.second.scales);
  }
  return state;
}

void AdamW8bit::SetNumSteps(int64_t num_steps) {
  num_steps_ = num_steps;
  if (small_.has_value()) small_->SetNumSteps(num_steps);
}

}  // namespace hpo::trainer
