#include "memory/allocator/allocation_timeline.h"

namespace hpo::memory {

int64_t TensorBytes(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    if (factor == 0) return 0;
    if (product > kLargestTensorBytes / factor) {
      product = kLargestTensorBytes;
    } else {
      product *= factor;
    }
  }
  return product;
}

void AllocationTimeline::Reach(const Level& level) {
  if (level.Total() > peak_.Total()) peak_ = level;
}

void AllocationTimeline::Change(const Level& by) {
  now_.other += by.other;
  now_.gradients += by.gradients;
  Reach(now_);
}

void AllocationTimeline::Allocate(int64_t bytes) { Change({.other = bytes}); }

void AllocationTimeline::Free(int64_t bytes) { now_.other -= bytes; }

void AllocationTimeline::Touch(int64_t bytes) {
  Allocate(bytes);
  Free(bytes);
}

void AllocationTimeline::Append(const AllocationTimeline& part, int64_t times) {
  if (times <= 0) return;
  // Each repetition starts a constant higher or lower, so the highest is the first or the last.
  for (const int64_t before : {int64_t{0}, times - 1}) {
    Reach({.other = now_.other + before * part.now_.other + part.peak_.other,
           .gradients = now_.gradients + before * part.now_.gradients + part.peak_.gradients});
  }
  now_.other += times * part.now_.other;
  now_.gradients += times * part.now_.gradients;
}

}  // namespace hpo::memory
