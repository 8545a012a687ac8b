// libcudart: addresses of the driver's calls, which torch looks up by name.
#include <cuda.h>

#include "emulator/cudart/cudart.h"

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                        unsigned int, unsigned long long,
                                                        cudaDriverEntryPointQueryResult* status) {
  HPO_CUDA_CALL(cudaGetDriverEntryPointByVersion);
  cuGetProcAddress_v2(symbol, function, CUDA_VERSION, 0, nullptr);
  if (status != nullptr) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
