// libcudart: memory. Device addresses have nothing behind them: what is read back is true where it
// is known (device_values.h), otherwise zero.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "emulator/cudart.h"
#include "emulator/device_values.h"

namespace {

using hpo::emulator::AddressSpace;
using hpo::emulator::CurrentDevice;
using hpo::emulator::DeviceValues;
using hpo::emulator::Done;
using hpo::emulator::Machine;
using hpo::emulator::Values;

constexpr size_t kHostPage = 4096;

// Pinned pages, and the addresses of the variables that kernels have.
struct HostMemory {
  std::mutex mutex;
  std::map<uintptr_t, size_t> pinned;  // start -> bytes
  std::unordered_map<const void*, char*> variables;
};

HostMemory& Host() {
  static HostMemory* const host = new HostMemory;
  return *host;
}

void Pin(const void* start, size_t bytes) {
  const std::lock_guard<std::mutex> lock(Host().mutex);
  Host().pinned[reinterpret_cast<uintptr_t>(start)] = bytes;
}

void Unpin(const void* start) {
  const std::lock_guard<std::mutex> lock(Host().mutex);
  Host().pinned.erase(reinterpret_cast<uintptr_t>(start));
}

bool IsPinned(const void* pointer) {
  const std::lock_guard<std::mutex> lock(Host().mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto after = Host().pinned.upper_bound(address);
  if (after == Host().pinned.begin()) return false;
  const auto& [start, bytes] = *std::prev(after);
  return address < start + bytes;
}

void Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  Machine& machine = Machine::Get();
  const bool from_device = machine.IsDeviceAddress(from);
  if (machine.IsDeviceAddress(to)) {
    if (from_device) return Values().Copy(to, from, bytes);
    return Values().Remember(to, {static_cast<const char*>(from), bytes});
  }
  if (!from_device) {
    std::memmove(to, from, bytes);
  } else if (const auto known = Values().Find(from, bytes); known.has_value()) {
    std::memcpy(to, known->data(), bytes);
  } else {
    std::memset(to, 0, bytes);
  }
}

void Set(void* to, int value, size_t bytes) {
  if (!Machine::Get().IsDeviceAddress(to)) {
    std::memset(to, value, bytes);
  } else if (bytes > DeviceValues::kLongest) {
    Values().Forget(to, bytes);
  } else {
    Values().Remember(to, std::string(bytes, static_cast<char>(value)));
  }
}

// A variable of a kernel is in the context, whose bytes are counted already.
char* VariableAddress(const void* symbol) {
  const std::lock_guard<std::mutex> lock(Host().mutex);
  char*& address = Host().variables[symbol];
  if (address == nullptr) address = Machine::Get().ReserveAddresses(AddressSpace::kPage);
  return address;
}

void Log(const char* call, size_t bytes) {
  auto& log = Machine::Get().log();
  if (log.is_on()) log.Write(std::string(call) + " " + std::to_string(bytes));
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  HPO_CUDA_CALL(cudaMalloc);
  *pointer = bytes == 0 ? nullptr : Machine::Get().Allocate(CurrentDevice(), bytes);
  const bool full = bytes != 0 && *pointer == nullptr;
  Log(full ? "cudaMalloc full" : "cudaMalloc", bytes);
  return full ? Done(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  HPO_CUDA_CALL(cudaFree);
  Machine& machine = Machine::Get();
  // Of nothing: how programs make CUDA create its context.
  if (pointer == nullptr) {
    return machine.UseDevice(CurrentDevice()) ? cudaSuccess : Done(cudaErrorMemoryAllocation);
  }
  Log("cudaFree", 0);
  return machine.Free(pointer) ? cudaSuccess : Done(cudaErrorInvalidValue);
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
  HPO_CUDA_CALL(cudaHostAlloc);
  const size_t whole = (bytes + kHostPage - 1) / kHostPage * kHostPage;
  *pointer = std::aligned_alloc(kHostPage, whole);
  if (*pointer == nullptr) return Done(cudaErrorMemoryAllocation);
  Pin(*pointer, whole);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  HPO_CUDA_CALL(cudaFreeHost);
  Unpin(pointer);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int) {
  HPO_CUDA_CALL(cudaHostRegister);
  Pin(pointer, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  HPO_CUDA_CALL(cudaHostUnregister);
  Unpin(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  HPO_CUDA_CALL(cudaMemcpy);
  Copy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  HPO_CUDA_CALL(cudaMemcpyAsync);
  Copy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t) {
  HPO_CUDA_CALL(cudaMemcpy2DAsync);
  for (size_t row = 0; row < height; ++row) {
    Copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
         width);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t) {
  HPO_CUDA_CALL(cudaMemcpyPeerAsync);
  Copy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind) {
  HPO_CUDA_CALL(cudaMemcpyToSymbol);
  Copy(VariableAddress(symbol) + offset, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  HPO_CUDA_CALL(cudaMemset);
  Set(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  HPO_CUDA_CALL(cudaMemsetAsync);
  Set(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  HPO_CUDA_CALL(cudaPointerGetAttributes);
  *attributes = {};
  if (Machine::Get().IsDeviceAddress(pointer)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = Machine::Get().DeviceOf(pointer, CurrentDevice());
    attributes->devicePointer = const_cast<void*>(pointer);
  } else {
    attributes->type = IsPinned(pointer) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(pointer);
    if (IsPinned(pointer)) attributes->devicePointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  HPO_CUDA_CALL(cudaGetSymbolAddress);
  *pointer = VariableAddress(symbol);
  return cudaSuccess;
}

}  // extern "C"
