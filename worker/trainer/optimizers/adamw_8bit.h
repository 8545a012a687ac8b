// AdamW whose two moments take 8 bits a value (dynamic_quantization.h): 2 bytes for each parameter
// element in place of 8. Parameters of fewer than 4,096 elements keep float32 moments.
//
// A step decodes, updates and encodes a piece of a parameter at a time, in scratch of a fixed size:
// there is never a float32 copy of a state. The update is made with the moments before they are
// rounded.
// Source: Dettmers et al. 2022 (arXiv:2110.02861). Golden data: scripts/reference/optimizers.py.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/trainer/optimizers/adamw.h"
#include "worker/trainer/optimizers/dynamic_quantization.h"

namespace hpo::trainer {

// All parameters are float32 and contiguous, and so are their gradients.
class AdamW8bit final : public Optimizer {
 public:
  // Allocates what memory/trace/optimizer_states.h says.
  AdamW8bit(std::vector<ParameterGroup> groups, const AdamWOptions& options);

  const std::vector<ParameterGroup>& groups() const override { return groups_; }
  void Step(double learning_rate) override;
  int64_t num_steps() const override { return num_steps_; }
  // "<parameter>.exp_avg.codes" (uint8), "<parameter>.exp_avg.scales", and so for "exp_avg_sq"; of
  // small parameters AdamW's.
  std::vector<NamedTensor> State() const override;
  void SetNumSteps(int64_t num_steps) override;

 private:
  struct Quantized {
    std::string name;
    torch::Tensor parameter;
    double weight_decay = 0.0;
    QuantizedTensor first;
    QuantizedTensor second;
  };

  void AllocateScratch(int64_t elements, torch::Device device);
  // Elements from block `first_block` on, `count` of them.
  void UpdatePiece(const Quantized& state, int64_t first_block, int64_t count,
                   double learning_rate);

  std::vector<ParameterGroup> groups_;
  AdamWOptions options_;
  std::optional<AdamW> small_;  // none where every parameter is large
  std::vector<Quantized> large_;
  DynamicCode signed_code_;
  DynamicCode unsigned_code_;
  torch::Tensor first_;  // scratch
  torch::Tensor second_;
  torch::Tensor denominator_;
  torch::Tensor indices_;
  torch::Tensor kept_second_;  // scalars: beta2,
  torch::Tensor correction_;   // 1 / sqrt(1 - beta2^t),
  torch::Tensor epsilon_;      // eps,
  torch::Tensor kept_weight_;  // 1 - learning rate * weight decay
  int64_t num_steps_ = 0;
};

}  // namespace hpo::trainer
