// libcudart: streams and events. All work is done as soon as it is asked for.
#include "emulator/cudart.h"

namespace {

// A handle is an address that nobody else has; it is the caller's until it is destroyed.
template <typename Handle>
cudaError_t NewHandle(Handle* handle) {
  *handle = reinterpret_cast<Handle>(new char);
  return cudaSuccess;
}

template <typename Handle>
cudaError_t DeleteHandle(Handle handle) {
  delete reinterpret_cast<char*>(handle);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  HPO_CUDA_CALL(cudaStreamCreate);
  return NewHandle(stream);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  HPO_CUDA_CALL(cudaStreamCreateWithPriority);
  return NewHandle(stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  HPO_CUDA_CALL(cudaStreamDestroy);
  return DeleteHandle(stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
  HPO_CUDA_CALL(cudaStreamSynchronize);
  hpoEmulatedCountWait();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t) {
  HPO_CUDA_CALL(cudaStreamQuery);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int) {
  HPO_CUDA_CALL(cudaStreamWaitEvent);
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int) {
  HPO_CUDA_CALL(cudaStreamAddCallback);
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  HPO_CUDA_CALL(cudaStreamIsCapturing);
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* num_dependencies) {
  HPO_CUDA_CALL(cudaStreamGetCaptureInfo);
  *status = cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = 0;
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (num_dependencies != nullptr) *num_dependencies = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  HPO_CUDA_CALL(cudaEventCreate);
  return NewHandle(event);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  HPO_CUDA_CALL(cudaEventCreateWithFlags);
  return NewHandle(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  HPO_CUDA_CALL(cudaEventDestroy);
  return DeleteHandle(event);
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  HPO_CUDA_CALL(cudaEventRecord);
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned int) {
  HPO_CUDA_CALL(cudaEventRecordWithFlags);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t) {
  HPO_CUDA_CALL(cudaEventQuery);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t) {
  HPO_CUDA_CALL(cudaEventSynchronize);
  return cudaSuccess;
}

// Times are not emulated; a program that divides by one must go on.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  HPO_CUDA_CALL(cudaEventElapsedTime);
  *milliseconds = 1.0F;
  return cudaSuccess;
}

}  // extern "C"
