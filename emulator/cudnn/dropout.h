// The random state of cuDNN's dropout.
#pragma once

#include <cstddef>

#include "emulator/cards.h"

namespace hpo::emulator::cudnn {

// Bytes of random state that dropout keeps on a GPU: a state of cuRAND's default generator for each
// thread that can run at once. That a state is a curandState_t, and that their number depends on
// the GPU, is in PyTorch's own copy of the descriptor for cuDNN 6 (ATen/cudnn/Descriptors.h, 2018);
// that there is one for each thread is an assumption ("a few MB": awslabs/raf pull request 39).
size_t DropoutStateBytes(const Card& card);

}  // namespace hpo::emulator::cudnn
