#include "emulator/host_memory.h"

#include <cstdlib>
#include <iterator>

namespace hpo::emulator {
namespace {

constexpr size_t kHostPage = 4096;

uintptr_t Number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

HostMemory& HostMemory::Get() {
  static HostMemory* const memory = new HostMemory;
  return *memory;
}

void* HostMemory::Allocate(size_t bytes) {
  const size_t whole = (bytes + kHostPage - 1) / kHostPage * kHostPage;
  void* const pointer = std::aligned_alloc(kHostPage, whole);
  if (pointer != nullptr) Register(pointer, whole);
  return pointer;
}

void HostMemory::Free(void* pointer) {
  Unregister(pointer);
  std::free(pointer);
}

void HostMemory::Register(const void* start, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pinned_[Number(start)] = bytes;
}

void HostMemory::Unregister(const void* start) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pinned_.erase(Number(start));
}

bool HostMemory::IsPinned(const void* pointer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto after = pinned_.upper_bound(Number(pointer));
  if (after == pinned_.begin()) return false;
  const auto& [start, bytes] = *std::prev(after);
  return Number(pointer) < start + bytes;
}

}  // namespace hpo::emulator
