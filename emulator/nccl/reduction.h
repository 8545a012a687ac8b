// Reductions of values that are known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/nccl/types.h"

namespace hpo::emulator::nccl {

// The elements of all `values` (of equal size, at least one) reduced in the order of ranks.
// Integers wrap around; 16-bit floats are reduced in 32 bits and rounded once, where NCCL may round
// at each rank. The average of integers is rounded towards zero. Nothing for 8-bit floats: their
// rounding is not emulated.
std::optional<std::string> Reduce(int32_t type, int32_t reduction,
                                  const std::vector<std::string>& values);

// The elements of `value` times `factor`, which is one element; for ncclRedOpCreatePreMulSum.
std::optional<std::string> Scale(int32_t type, const std::string& value, const std::string& factor);

}  // namespace hpo::emulator::nccl
