// The factor on the loss that keeps small gradients above float16's smallest number.
//
// Halved where a step's gradients are not finite (the step is skipped), doubled after
// kGrowthInterval steps in a row whose gradients are. Free of torch.
// Source: Micikevicius et al. 2018 (arXiv:1710.03740), section 3.2; constants of torch.amp's
// GradScaler.
#pragma once

#include <cstdint>

namespace hpo::trainer {

struct LossScale {
  static constexpr int64_t kGrowthInterval = 2000;
  static constexpr double kFirst = 65536.0;
  // Below this, gradients overflow for another reason than the scale.
  static constexpr double kSmallest = 1.0 / 65536.0;

  double scale = 1.0;
  int64_t good_steps = 0;  // in a row
  int64_t skipped = 0;     // steps, of all
  bool operator==(const LossScale&) const = default;

  // After the gradients of a step. Returns whether the step may be taken.
  bool Update(bool finite);
};

}  // namespace hpo::trainer
