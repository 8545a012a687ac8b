// Sizes as people write them.
#pragma once

#include <cstddef>
#include <string>

namespace hpo::emulator {

// Reads "12GiB", "300MiB", "1KiB", "85094170624B"; returns false where it is none of these.
bool ParseBytes(const std::string& text, size_t& bytes);

}  // namespace hpo::emulator
