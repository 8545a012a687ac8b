// Calls of CUDA's driver by name.
#pragma once

#include <string_view>

namespace hpo::emulator {

// Null for a call that is not emulated.
void* FindDriverCall(std::string_view name);

}  // namespace hpo::emulator
