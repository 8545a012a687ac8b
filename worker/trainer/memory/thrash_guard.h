// Notices that the device's allocator is thrashing: it has to give its cache back to go on, step
// after step, and each time the device stands still meanwhile. Free of torch.
// Source: the same rule as Composer's automatic micro-batching
// (composer/trainer/trainer.py, github.com/mosaicml/composer).
#pragma once

#include <cstdint>

namespace hpo::trainer {

class ThrashGuard {
 public:
  // `retries`: MemoryUse::alloc_retries after a step. True where it has risen in kSteps consecutive
  // steps; then the count restarts.
  bool AfterStep(int64_t retries) {
    rising_steps_ = retries > last_ ? rising_steps_ + 1 : 0;
    last_ = retries;
    if (rising_steps_ < kSteps) return false;
    rising_steps_ = 0;
    return true;
  }

  // What happened until now, outside of a step that ran through, does not count.
  void StartFrom(int64_t retries) {
    last_ = retries;
    rising_steps_ = 0;
  }

  static constexpr int kSteps = 2;

 private:
  int64_t last_ = 0;
  int rising_steps_ = 0;
};

}  // namespace hpo::trainer
