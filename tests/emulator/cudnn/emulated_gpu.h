// The GPU that these tests are about.
#pragma once

#include <stdlib.h>

namespace hpo::emulator::cudnn {

// Set before the machine is read for the first time. An A100 has tensor cores for half precision.
inline const int kGpuIsSet = setenv("HPO_EMULATED_CARD", "a100", 1);

}  // namespace hpo::emulator::cudnn
