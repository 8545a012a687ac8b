// GPUs that a user describes in a file, one in a block of `key = value` lines:
//   name = rtx-a5000              begins a GPU
//   capability = 8.6
//   multiprocessors = 64
//   memory = 24247MiB             total of cudaMemGetInfo, with its unit
// and where it matters: product (the name that the driver reports; default: name), nvidia_smi (the
// total that nvidia-smi reports; default: memory), l2 (default 4MiB), clock and memory_clock in MHz
// (default 1000) and memory_bus in bits (default 256). Empty lines and what follows a # do not
// count.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "emulator/cards.h"

namespace hpo::emulator {

// Reads the GPUs of file `path`, or returns one line that says what is wrong, with file and line.
std::variant<std::vector<Card>, std::string> ReadCardFile(const std::string& path);

}  // namespace hpo::emulator
