// What the server says of a configuration's memory, for people. Pure. `width`: the terminal's
// columns, 0 for unlimited.
#pragma once

#include <string>

#include "memory/need/memory_estimate.h"

namespace hpo::cli {

// The estimate by class and the verdict.
std::string MemoryText(const memory::MemoryAnswer& verdict, int width);

// Two estimates side by side, with what the second has more or less.
std::string CompareText(const memory::MemoryAnswer& before, const memory::MemoryAnswer& after,
                        int width);

}  // namespace hpo::cli
