// A value on one axis of a Parzen density, and the kernel of an observation there.
#pragma once

namespace hpo::sampler {

struct Interval {
  double low = 0.0;
  double high = 1.0;
  bool operator==(const Interval&) const = default;
};

// A value on one axis.
struct Coordinate {
  bool present = false;
  // Position in [0, 1]; on a categorical axis the index of the choice.
  double at = 0.0;
  // On a grid axis: the interval around `at` that the value stands for.
  Interval cell;
};

// A normal kernel, truncated to [0, 1]. The bandwidth of an observation is the larger gap to its
// neighbours in sorted order (ties by age), to the one that there is where it is outermost, to the
// further end of [0, 1] where it is alone; at least 1 / min(100, observations + 2), at most 1.
struct NormalKernel {
  double centre = 0.5;
  double bandwidth = 1.0;  // the defaults are the prior's
  bool operator==(const NormalKernel&) const = default;
};

}  // namespace hpo::sampler
