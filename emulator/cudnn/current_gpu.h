// The GPU that the calling thread uses.
#pragma once

#include "emulator/cards.h"

namespace hpo::emulator::cudnn {

// By the emulated libcudart; the first one in a process that has none.
const Card& CurrentGpu();

}  // namespace hpo::emulator::cudnn
