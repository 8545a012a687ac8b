// How the calls of cuBLAS and cuDNN begin. Their headers are not needed to build torch's
// users, so their types are void* and int here: status 0 is success in each.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "emulator/machine.h"

// Begins a call that can fail: it is counted, and faults may be put on it by this name
// (make_libraries.py finds them so).
#define HPO_LIBRARY_CALL(name) \
  if (const int fault = hpoEmulatedSilent(#name); fault != 0) return fault

// The same for a call that writes device memory with what nobody knows (device_values.h). A call
// that knows which ranges it writes begins with HPO_LIBRARY_CALL, and remembers or forgets those.
#define HPO_COMPUTE_CALL(name) \
  if (const int fault = hpoEmulatedCompute(#name); fault != 0) return fault

namespace hpo::emulator {

// INVALID_VALUE of cuSOLVER and cuSPARSE.
constexpr int kResultDoesNotFit = 3;

// Sets the result of a call. Returns its status: genuine calls whose size does not fit into an int
// return INVALID_VALUE (pytorch issue 102963, cupy issue 7261).
template <std::integral Result>
int SetResult(Result* result, int64_t value) {
  if (!std::in_range<Result>(value)) return kResultDoesNotFit;
  *result = static_cast<Result>(value);
  return 0;
}

inline int SetResult(const char** result, const char* text) {
  *result = text;
  return 0;
}

// Zero, where the result is on the host: cuBLAS writes scalars to either memory.
template <typename Result>
void ZeroOnHost(Result* result) {
  if (!Machine::Get().IsDeviceAddress(result)) *result = 0;
}

// Bytes of an element of a cudaDataType (library_types.h). Types of 8 bits and the reserved ones:
// one byte.
constexpr int64_t ElementBytes(int64_t type) {
  switch (type) {
    case 2:   // CUDA_R_16F
    case 14:  // CUDA_R_16BF
      return 2;
    case 0:   // CUDA_R_32F
    case 6:   // CUDA_C_16F
    case 15:  // CUDA_C_16BF
      return 4;
    case 1:  // CUDA_R_64F
    case 4:  // CUDA_C_32F
      return 8;
    case 5:  // CUDA_C_64F
      return 16;
    case 10:  // CUDA_R_32I
      return 4;
    default:
      return 1;
  }
}

}  // namespace hpo::emulator
