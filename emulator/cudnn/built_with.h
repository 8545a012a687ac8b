// The version of cuDNN that torch was built with. Torch compares it with the version at run time,
// and chooses kernels by it.
#pragma once

#include <cstddef>
#include <string_view>

namespace hpo::emulator::cudnn {

// Version that the METADATA of torch's wheel requires: 90501 for "nvidia-cudnn-cu12==9.5.1.17".
// Returns 0 if it requires none.
size_t RequiredVersion(std::string_view metadata);

// Version for the torch that is loaded in this process; that of torch 2.11 if its wheel's METADATA
// is not next to it.
size_t VersionOfTorch();

}  // namespace hpo::emulator::cudnn
