// libcudart: addresses of the driver's calls, which torch looks up by name.
#include "emulator/cudart/cudart.h"
#include "emulator/driver/calls.h"

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                        unsigned int, unsigned long long,
                                                        cudaDriverEntryPointQueryResult* status) {
  HPO_CUDA_CALL(cudaGetDriverEntryPointByVersion);
  *function = hpo::emulator::FindDriverCall(symbol);
  if (status != nullptr) *status = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
