// A low-rank adapter beside a linear layer: what LoRA trains in its place.
// Source: Hu et al. 2021 (arXiv:2106.09685); names and initial values as Hugging Face's peft 0.21
// has them (golden data: scripts/reference/lora.py).
#pragma once

#include <cstdint>
#include <memory>

#include "memory/trace/lora.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/layers/stored_weight.h"

namespace hpo::trainer {

class LowRankAdapter {
 public:
  // Registers the adapter's parameters below `layer`, on `device`: lora_A.weight [rank, inputs] and
  // lora_B.weight [outputs, rank], which is zero, so that nothing changes at first; A is drawn from
  // the device's generator. `layer` owns the adapter.
  LowRankAdapter(torch::nn::Module& layer, const memory::AdaptedLayer& sizes,
                 const memory::LoraOptions& options, torch::Device device);

  // output + alpha / rank * B A dropout(input). Dropout acts when `training`.
  torch::Tensor AddTo(const torch::Tensor& output, const torch::Tensor& input, bool training) const;

  // Adds alpha / rank * B A to `weight`, [outputs, inputs], float32 on the host.
  void MergeInto(torch::Tensor weight) const;

 private:
  torch::Tensor a_;
  torch::Tensor b_;
  double scale_;
  double dropout_;
};

// A linear layer, which may have an adapter, and whose weight may be stored in fewer bits.
class AdaptableLayer : public torch::nn::Module {
 public:
  void Adapt(const memory::AdaptedLayer& sizes, const memory::LoraOptions& options,
             torch::Device device) {
    adapter_ = std::make_unique<LowRankAdapter>(*this, sizes, options, device);
  }
  // Null: none.
  const LowRankAdapter* adapter() const { return adapter_.get(); }

  // The weight, where it is no parameter; null: it is.
  const std::shared_ptr<StoredWeight>& stored() const { return stored_; }

  // A tensor of the layer's weight's shape, seen as [outputs, inputs].
  virtual torch::Tensor ByOutputs(const torch::Tensor& weight) const { return weight; }

 protected:
  // The weight that the layer makes, or, where it is stored, an undefined tensor.
  torch::Tensor MakeWeight(at::IntArrayRef shape, torch::Device device);
  torch::Tensor Adapted(const torch::Tensor& output, const torch::Tensor& input) const {
    return adapter_ == nullptr ? output : adapter_->AddTo(output, input, is_training());
  }

 private:
  std::unique_ptr<LowRankAdapter> adapter_;
  std::shared_ptr<StoredWeight> stored_;
};

}  // namespace hpo::trainer
