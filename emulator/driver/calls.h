// What the files of the emulated libcuda share. Its contract is NVIDIA's cuda.h, included from the
// wheels. libcudart loads libcuda.so.1 and hands the addresses of its calls out.
#pragma once

#include <cuda.h>

#include <string_view>

#include "emulator/machine.h"

namespace hpo::emulator {

// The address of a call by its name, as "cuMemAlloc" or "cuMemAlloc_v2". For a call that is not
// emulated, the address of a function that ends the program with the call's name: programs look up
// many calls and make few.
void* FindDriverCall(std::string_view name);

// Counts a call: the code it is to fail with, by a fault or since a sticky one, or success.
CUresult EnterDriverCall(const char* call);

inline void* Address(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

}  // namespace hpo::emulator

// Begins a call that can fail: it is counted, and faults may be put on it by this name.
// make_libraries.py finds the names so: libcuda exports them, and FindDriverCall finds them.
#define HPO_DRIVER_CALL(name)                                                                \
  if (const CUresult fault = hpo::emulator::EnterDriverCall(#name); fault != CUDA_SUCCESS) { \
    return fault;                                                                            \
  }                                                                                          \
  static_assert(true)
