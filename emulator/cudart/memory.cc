// libcudart: memory. Device addresses have nothing behind them (device_values.h).
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "emulator/cudart/cudart.h"
#include "emulator/host_memory.h"
#include "emulator/memory_pool.h"
#include "emulator/streams/copies.h"

namespace {

using hpo::emulator::AddressSpace;
using hpo::emulator::CurrentDevice;
using hpo::emulator::Done;
using hpo::emulator::EnqueueCopy;
using hpo::emulator::EnqueueCopy2D;
using hpo::emulator::EnqueueSet;
using hpo::emulator::HostMemory;
using hpo::emulator::Machine;
using hpo::emulator::MemoryPool;

// A variable of a kernel is in the context, whose bytes are counted already.
char* VariableAddress(const void* symbol) {
  static std::mutex mutex;
  static auto* const addresses = new std::unordered_map<const void*, char*>;
  const std::lock_guard<std::mutex> lock(mutex);
  char*& address = (*addresses)[symbol];
  if (address == nullptr) address = Machine::Get().ReserveAddresses(AddressSpace::kPage);
  return address;
}

// Managed memory is the host's here: CUDA moves its pages to a GPU that uses them, and away from it
// where the memory is wanted, so it takes nothing of the GPU for good.
class ManagedMemory {
 public:
  static ManagedMemory& Get() {
    static auto* const memory = new ManagedMemory;
    return *memory;
  }
  void* Allocate(size_t bytes) {
    void* const pointer = HostMemory::Get().Allocate(bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pointer != nullptr) pointers_.insert(pointer);
    return pointer;
  }
  // False: it is none.
  bool Free(void* pointer) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (pointers_.erase(pointer) == 0) return false;
    }
    HostMemory::Get().Free(pointer);
    return true;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<void*> pointers_;
};

void Log(const char* call, size_t bytes) {
  auto& log = Machine::Get().log();
  if (log.is_on()) log.Write(std::string(call) + " " + std::to_string(bytes));
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  HPO_UNSAFE_CALL(cudaMalloc);
  *pointer = bytes == 0 ? nullptr : Machine::Get().Allocate(CurrentDevice(), bytes);
  const bool full = bytes != 0 && *pointer == nullptr;
  Log(full ? "cudaMalloc full" : "cudaMalloc", bytes);
  return full ? Done(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  HPO_UNSAFE_CALL(cudaFree);
  Machine& machine = Machine::Get();
  // Of nothing: how programs make CUDA create its context.
  if (pointer == nullptr) {
    return machine.UseDevice(CurrentDevice()) ? cudaSuccess : Done(cudaErrorMemoryAllocation);
  }
  Log("cudaFree", 0);
  MemoryPool* const pool = MemoryPool::OfAddress(pointer);
  const bool done = pool != nullptr ? pool->Free(pointer)
                                    : machine.Free(pointer) || ManagedMemory::Get().Free(pointer);
  return done ? cudaSuccess : Done(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  HPO_CUDA_CALL(cudaMemGetInfo);
  Machine& machine = Machine::Get();
  if (!machine.UseDevice(CurrentDevice())) return Done(cudaErrorMemoryAllocation);
  *free = machine.FreeBytes(CurrentDevice());
  *total = machine.TotalBytes(CurrentDevice());
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int) {
  HPO_UNSAFE_CALL(cudaHostAlloc);
  *pointer = HostMemory::Get().Allocate(bytes);
  return *pointer != nullptr ? cudaSuccess : Done(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void* pointer) {
  HPO_UNSAFE_CALL(cudaFreeHost);
  HostMemory::Get().Free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int) {
  HPO_UNSAFE_CALL(cudaMallocManaged);
  if (bytes == 0) return Done(cudaErrorInvalidValue);
  *pointer = ManagedMemory::Get().Allocate(bytes);
  return *pointer != nullptr ? cudaSuccess : Done(cudaErrorMemoryAllocation);
}

#if CUDART_VERSION < 13000
cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t) {
#else
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned int, cudaStream_t) {
#endif
  HPO_CUDA_CALL(cudaMemPrefetchAsync);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int) {
  HPO_CUDA_CALL(cudaHostRegister);
  HostMemory::Get().Register(pointer, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  HPO_CUDA_CALL(cudaHostUnregister);
  HostMemory::Get().Unregister(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  HPO_UNSAFE_CALL(cudaMemcpy);
  return Done(EnqueueCopy(to, from, bytes, /*stream=*/nullptr));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  HPO_CUDA_CALL(cudaMemcpyAsync);
  return Done(EnqueueCopy(to, from, bytes, stream));
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  HPO_CUDA_CALL(cudaMemcpy2DAsync);
  return Done(EnqueueCopy2D(
      to, from, {.width = width, .height = height, .to_pitch = to_pitch, .from_pitch = from_pitch},
      stream));
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  HPO_CUDA_CALL(cudaMemcpyPeerAsync);
  return Done(EnqueueCopy(to, from, bytes, stream));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind) {
  HPO_UNSAFE_CALL(cudaMemcpyToSymbol);
  return Done(EnqueueCopy(VariableAddress(symbol) + offset, from, bytes, /*stream=*/nullptr));
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  HPO_CUDA_CALL(cudaMemset);
  return Done(EnqueueSet(to, value, bytes, /*stream=*/nullptr));
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  HPO_CUDA_CALL(cudaMemsetAsync);
  return Done(EnqueueSet(to, value, bytes, stream));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  HPO_CUDA_CALL(cudaPointerGetAttributes);
  *attributes = {};
  if (Machine::Get().IsDeviceAddress(pointer)) {
    attributes->type = cudaMemoryTypeDevice;
    const MemoryPool* const pool = MemoryPool::OfAddress(pointer);
    attributes->device =
        pool != nullptr ? pool->device() : Machine::Get().DeviceOf(pointer, CurrentDevice());
    attributes->devicePointer = const_cast<void*>(pointer);
  } else {
    const bool is_pinned = HostMemory::Get().IsPinned(pointer);
    attributes->type = is_pinned ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(pointer);
    if (is_pinned) attributes->devicePointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  HPO_CUDA_CALL(cudaGetSymbolAddress);
  *pointer = VariableAddress(symbol);
  return cudaSuccess;
}

}  // extern "C"
