// libcudart of CUDA 12: the calls that CUDA 13 has in another form.
#include "emulator/cudart/cudart.h"

extern "C" {

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies,
                                        size_t* num_dependencies) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr,
                                     num_dependencies);
}

}  // extern "C"
