// The pool behind cudaMallocAsync.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace hpo::emulator {

// The default memory pool of a device. All work is done when it is asked for, so freed memory can
// be used again at once. How the driver places allocations is not published. It is documented that
// it maps unused memory of a pool to other addresses before it takes more of the device; so the
// pool holds what its allocations need in pages of 2 MiB, without fragmentation: a lower bound of
// what a GPU would reserve. Safe for threads. Source: CUDA programming guide, "Stream Ordered
// Memory Allocator".
class MemoryPool {
 public:
  // Alignment of allocations that CUDA documents.
  static constexpr size_t kAlignment = 256;

  struct Usage {
    uint64_t reserved = 0;
    uint64_t reserved_high = 0;
    uint64_t used = 0;
    uint64_t used_high = 0;
  };

  // The pool of a device of this process; null for a device that there is not.
  static MemoryPool* OfDevice(int device);
  // The pool that an address was allocated from, or null.
  static MemoryPool* OfAddress(const void* address);
  // What CUDA does when a program waits for the device: pools release memory above their threshold.
  static void ReleaseUnused();

  int device() const { return device_; }

  // Null if the device is full.
  void* Allocate(size_t bytes);
  // False if `address` was not allocated here.
  bool Free(const void* address);
  // Releases unused memory until only `bytes` are reserved, or what is in use.
  void TrimTo(uint64_t bytes);

  Usage usage();
  void ResetReservedHigh();
  void ResetUsedHigh();
  uint64_t release_threshold();
  void set_release_threshold(uint64_t bytes);

 private:
  explicit MemoryPool(int device) : device_(device) {}
  bool Holds(const void* address);
  void Shrink(uint64_t bytes);

  const int device_;
  std::mutex mutex_;
  Usage usage_;
  uint64_t release_threshold_ = 0;
  std::unordered_map<const void*, size_t> allocations_;
};

}  // namespace hpo::emulator
