// How the model is run, forward and backward.
#pragma once

#include <cstdint>

#include "common/study/trial.h"

namespace hpo::memory {

struct Execution {
  // Layers of a segment that backward computes again; 0: none is.
  int64_t checkpoint_every = 0;
  Precision precision = Precision::kFloat32;
  bool operator==(const Execution&) const = default;
};

}  // namespace hpo::memory
