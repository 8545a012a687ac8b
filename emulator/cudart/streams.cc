// libcudart: streams and events (streams.h has the rules).
#include <functional>

#include "emulator/cudart/cudart.h"
#include "emulator/memory_pool.h"

namespace {

using hpo::emulator::Done;
using hpo::emulator::MemoryPool;
using hpo::emulator::NodeKind;
using hpo::emulator::Streams;

// Ends a call that waits for the device, or asks whether it has finished: all work is done already.
cudaError_t Finished(int code) {
  if (code != 0) return Done(code);
  MemoryPool::ReleaseUnused();
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  HPO_CUDA_CALL(cudaStreamCreate);
  *stream = static_cast<cudaStream_t>(Streams::Get().CreateStream(/*is_blocking=*/true, 0));
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  HPO_CUDA_CALL(cudaStreamCreateWithPriority);
  const bool is_blocking = (flags & cudaStreamNonBlocking) == 0;
  *stream = static_cast<cudaStream_t>(Streams::Get().CreateStream(is_blocking, priority));
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  HPO_CUDA_CALL(cudaStreamGetPriority);
  *priority = Streams::Get().Priority(stream);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  HPO_CUDA_CALL(cudaDeviceGetStreamPriorityRange);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = Streams::kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  HPO_CUDA_CALL(cudaStreamDestroy);
  Streams::Get().DestroyStream(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  HPO_CUDA_CALL(cudaStreamSynchronize);
  return Finished(Streams::Get().Synchronize(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  HPO_CUDA_CALL(cudaStreamQuery);
  return Finished(Streams::Get().Synchronize(stream));
}

cudaError_t cudaDeviceSynchronize() {
  HPO_CUDA_CALL(cudaDeviceSynchronize);
  return Finished(Streams::Get().SynchronizeAll());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  HPO_CUDA_CALL(cudaStreamWaitEvent);
  return Done(Streams::Get().Wait(stream, event, (flags & cudaEventWaitExternal) != 0));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int) {
  HPO_CUDA_CALL(cudaStreamAddCallback);
  return Done(Streams::Get().Enqueue(stream, NodeKind::kHostFunction, [stream, callback, data] {
    callback(stream, cudaSuccess, data);
  }));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  HPO_CUDA_CALL(cudaLaunchHostFunc);
  return Done(Streams::Get().Enqueue(stream, NodeKind::kHostFunction,
                                     [function, data] { function(data); }));
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  HPO_CUDA_CALL(cudaEventCreate);
  *event = static_cast<cudaEvent_t>(Streams::Get().CreateEvent());
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  HPO_CUDA_CALL(cudaEventCreateWithFlags);
  *event = static_cast<cudaEvent_t>(Streams::Get().CreateEvent());
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  HPO_CUDA_CALL(cudaEventDestroy);
  Streams::Get().DestroyEvent(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  HPO_CUDA_CALL(cudaEventRecord);
  return Done(Streams::Get().Record(event, stream, /*is_external=*/false));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  HPO_CUDA_CALL(cudaEventRecordWithFlags);
  return Done(Streams::Get().Record(event, stream, (flags & cudaEventRecordExternal) != 0));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  HPO_UNSAFE_CALL(cudaEventQuery);
  return Finished(Streams::Get().SynchronizeEvent(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  HPO_CUDA_CALL(cudaEventSynchronize);
  return Finished(Streams::Get().SynchronizeEvent(event));
}

// Times are not emulated; a program that divides by one must go on.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  HPO_CUDA_CALL(cudaEventElapsedTime);
  *milliseconds = 1.0F;
  return cudaSuccess;
}

// There is nothing to profile.
cudaError_t cudaProfilerStart() {
  HPO_CUDA_CALL(cudaProfilerStart);
  return cudaSuccess;
}

cudaError_t cudaProfilerStop() {
  HPO_CUDA_CALL(cudaProfilerStop);
  return cudaSuccess;
}

}  // extern "C"
