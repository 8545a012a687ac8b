#include "worker/trainer/optimizers/loss_scale.h"

namespace hpo::trainer {

bool LossScale::Update(bool finite) {
  if (!finite) {
    scale /= 2.0;
    good_steps = 0;
    ++skipped;
    return false;
  }
  if (++good_steps == kGrowthInterval) {
    scale *= 2.0;
    good_steps = 0;
  }
  return true;
}

}  // namespace hpo::trainer
