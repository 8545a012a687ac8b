// libcudart: memory pools, which torch uses with backend:cudaMallocAsync.
#include <cstdint>
#include <string>

#include "emulator/cudart/cudart.h"
#include "emulator/memory_pool.h"

namespace {

using hpo::emulator::CaptureInfo;
using hpo::emulator::CaptureStatus;
using hpo::emulator::CurrentDevice;
using hpo::emulator::Done;
using hpo::emulator::MemoryPool;
using hpo::emulator::Streams;

MemoryPool& Of(cudaMemPool_t pool) { return *reinterpret_cast<MemoryPool*>(pool); }

// Allocations that are part of a graph are not emulated.
void EndIfCapturing(cudaStream_t stream, const char* call) {
  CaptureInfo info;
  Streams::Get().GetCaptureInfo(stream, info);
  if (info.status == CaptureStatus::kNone) return;
  hpoEmulatedMissing((std::string(call) + " on a stream that is being captured").c_str());
}

[[noreturn]] void EndWithAttribute(const char* call, cudaMemPoolAttr attribute) {
  hpoEmulatedMissing((std::string(call) + "(" + std::to_string(attribute) + ")").c_str());
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  HPO_CUDA_CALL(cudaDeviceGetDefaultMemPool);
  MemoryPool* const found = MemoryPool::OfDevice(device);
  if (found == nullptr) return Done(cudaErrorInvalidDevice);
  *pool = reinterpret_cast<cudaMemPool_t>(found);
  return cudaSuccess;
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  HPO_CUDA_CALL(cudaMallocAsync);
  EndIfCapturing(stream, "cudaMallocAsync");
  *pointer = bytes == 0 ? nullptr : MemoryPool::OfDevice(CurrentDevice())->Allocate(bytes);
  return bytes != 0 && *pointer == nullptr ? Done(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  HPO_CUDA_CALL(cudaFreeAsync);
  EndIfCapturing(stream, "cudaFreeAsync");
  if (pointer == nullptr) return cudaSuccess;
  MemoryPool* const pool = MemoryPool::OfAddress(pointer);
  return pool != nullptr && pool->Free(pointer) ? cudaSuccess : Done(cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  HPO_CUDA_CALL(cudaMemPoolGetAttribute);
  auto& number = *static_cast<uint64_t*>(value);
  const MemoryPool::Usage usage = Of(pool).usage();
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      number = Of(pool).release_threshold();
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
      number = usage.reserved;
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
      number = usage.reserved_high;
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemCurrent:
      number = usage.used;
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemHigh:
      number = usage.used_high;
      return cudaSuccess;
    default:
      EndWithAttribute("cudaMemPoolGetAttribute", attribute);
  }
}

// High marks can be set to zero only: they begin again at what is in use.
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  HPO_CUDA_CALL(cudaMemPoolSetAttribute);
  switch (attribute) {
    // When memory may be used again: at once, since all work is done when it is asked for.
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
      Of(pool).set_release_threshold(*static_cast<uint64_t*>(value));
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
      if (*static_cast<uint64_t*>(value) != 0) return Done(cudaErrorInvalidValue);
      Of(pool).ResetReservedHigh();
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemHigh:
      if (*static_cast<uint64_t*>(value) != 0) return Done(cudaErrorInvalidValue);
      Of(pool).ResetUsedHigh();
      return cudaSuccess;
    default:
      EndWithAttribute("cudaMemPoolSetAttribute", attribute);
  }
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  HPO_CUDA_CALL(cudaMemPoolTrimTo);
  Of(pool).TrimTo(bytes);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  HPO_CUDA_CALL(cudaMemPoolSetAccess);
  return cudaSuccess;
}

}  // extern "C"
