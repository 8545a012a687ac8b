#include "worker/trainer/optimizers/schedule.h"

#include <algorithm>
#include <cmath>

#include "common/base/status.h"

namespace hpo::trainer {

LinearSchedule::LinearSchedule(double peak, double warmup_ratio, int64_t total_steps)
    : peak_(peak),
      warmup_steps_(
          static_cast<int64_t>(std::ceil(warmup_ratio * static_cast<double>(total_steps)))),
      total_steps_(total_steps) {
  HPO_CHECK(warmup_ratio >= 0.0 && warmup_ratio <= 1.0 && total_steps > 0);
}

double LinearSchedule::At(int64_t step) const {
  if (step < warmup_steps_) {
    return peak_ * static_cast<double>(step) / static_cast<double>(warmup_steps_);
  }
  const int64_t remaining = std::max<int64_t>(0, total_steps_ - step);
  const int64_t decay_steps = std::max<int64_t>(1, total_steps_ - warmup_steps_);
  return peak_ * static_cast<double>(remaining) / static_cast<double>(decay_steps);
}

}  // namespace hpo::trainer
