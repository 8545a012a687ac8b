#include "emulator/memory_pool.h"

#include <algorithm>
#include <vector>

#include "emulator/device_values.h"
#include "emulator/machine.h"

namespace hpo::emulator {
namespace {

size_t RoundUp(size_t bytes) {
  return (bytes + MemoryPool::kAlignment - 1) / MemoryPool::kAlignment * MemoryPool::kAlignment;
}

}  // namespace

MemoryPool* MemoryPool::OfDevice(int device) {
  static const auto* const pools = [] {
    auto* const made = new std::vector<MemoryPool*>;
    for (int i = 0; i < Machine::Get().num_devices(); ++i) made->push_back(new MemoryPool(i));
    return made;
  }();
  const bool exists = device >= 0 && device < static_cast<int>(pools->size());
  return exists ? (*pools)[static_cast<size_t>(device)] : nullptr;
}

MemoryPool* MemoryPool::OfAddress(const void* address) {
  for (int device = 0; MemoryPool* const pool = OfDevice(device); ++device) {
    if (pool->Holds(address)) return pool;
  }
  return nullptr;
}

void MemoryPool::ReleaseUnused() {
  for (int device = 0; MemoryPool* const pool = OfDevice(device); ++device) {
    const std::lock_guard<std::mutex> lock(pool->mutex_);
    if (pool->usage_.reserved > pool->release_threshold_) pool->Shrink(pool->release_threshold_);
  }
}

bool MemoryPool::Holds(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return allocations_.contains(address);
}

void* MemoryPool::Allocate(size_t bytes) {
  bytes = RoundUp(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  Machine& machine = Machine::Get();
  const uint64_t needed = RoundUpToPage(usage_.used + bytes);
  if (needed > usage_.reserved) {
    if (!machine.Take(device_, needed - usage_.reserved)) return nullptr;
    usage_.reserved = needed;
  }
  usage_.used += bytes;
  usage_.used_high = std::max(usage_.used_high, usage_.used);
  usage_.reserved_high = std::max(usage_.reserved_high, usage_.reserved);
  void* const address = machine.ReserveAddresses(bytes);
  allocations_[address] = bytes;
  return address;
}

bool MemoryPool::Free(const void* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  usage_.used -= found->second;
  Forget(address, found->second);
  Machine::Get().ReleaseAddresses(address);
  allocations_.erase(found);
  return true;
}

void MemoryPool::Shrink(uint64_t bytes) {
  if (bytes >= usage_.reserved) return;
  const uint64_t kept = std::max<uint64_t>(RoundUpToPage(usage_.used), RoundUpToPage(bytes));
  if (kept >= usage_.reserved) return;
  Machine::Get().Give(device_, usage_.reserved - kept);
  usage_.reserved = kept;
}

void MemoryPool::TrimTo(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Shrink(bytes);
}

MemoryPool::Usage MemoryPool::usage() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return usage_;
}

void MemoryPool::ResetReservedHigh() {
  const std::lock_guard<std::mutex> lock(mutex_);
  usage_.reserved_high = usage_.reserved;
}

void MemoryPool::ResetUsedHigh() {
  const std::lock_guard<std::mutex> lock(mutex_);
  usage_.used_high = usage_.used;
}

uint64_t MemoryPool::release_threshold() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return release_threshold_;
}

void MemoryPool::set_release_threshold(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  release_threshold_ = bytes;
}

}  // namespace hpo::emulator
