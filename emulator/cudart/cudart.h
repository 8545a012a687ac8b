// What the files of the emulated libcudart share. Its contract is NVIDIA's cuda_runtime_api.h,
// included from the wheel that torch comes with.
#pragma once

#include <cuda_runtime_api.h>

#include "emulator/machine.h"
#include "emulator/streams/streams.h"

namespace hpo::emulator {

// Remembers an error for cudaGetLastError, and returns it.
cudaError_t Done(cudaError_t code);
// The error of this thread's calls so far; `take` forgets it.
cudaError_t LastError(bool take);

// The same for what Streams and EnqueueLaunch return.
inline cudaError_t Done(int code) { return Done(static_cast<cudaError_t>(code)); }

// Counts a call: the code it is to fail with, by a fault or since a sticky one, or success.
cudaError_t EnterCall(const char* call);

// An architecture by the number that kernels carry, of the calling thread's device.
int KernelArchitecture();

}  // namespace hpo::emulator

// The name of a call whose older form CUDA 13 has dropped: CUDA 12 has both, the newer one with a
// suffix. The older ones are in cuda12.cc.
#if CUDART_VERSION < 13000
#define HPO_NEWER_CALL(name, suffix) name##suffix
#else
#define HPO_NEWER_CALL(name, suffix) name
#endif

// Begins a call that can fail: it is counted, and faults may be put on it by this name
// (make_libraries.py finds them so).
#define HPO_CUDA_CALL(name)                                                              \
  if (const cudaError_t fault = hpo::emulator::EnterCall(#name); fault != cudaSuccess) { \
    return fault;                                                                        \
  }                                                                                      \
  static_assert(true)

// The same for a call that may disturb the capture of a stream.
#define HPO_UNSAFE_CALL(name)                                                            \
  HPO_CUDA_CALL(name);                                                                   \
  if (const int unsafe = hpo::emulator::Streams::Get().CheckUnsafeCall(); unsafe != 0) { \
    return hpo::emulator::Done(unsafe);                                                  \
  }                                                                                      \
  static_assert(true)
