// Learning rate over optimizer steps.
#pragma once

#include <cstdint>

namespace hpo::trainer {

// Rises linearly from 0 to `peak` over the warm-up, then falls linearly to 0 at `total_steps`.
// Same values as transformers' get_linear_schedule_with_warmup.
class LinearSchedule {
 public:
  // warmup_ratio in [0, 1]; total_steps > 0. The warm-up has ceil(warmup_ratio * total_steps)
  // steps.
  LinearSchedule(double peak, double warmup_ratio, int64_t total_steps);

  // The rate of optimizer step `step`, from 0; 0 from total_steps on.
  double At(int64_t step) const;

 private:
  double peak_;
  int64_t warmup_steps_;
  int64_t total_steps_;
};

}  // namespace hpo::trainer
