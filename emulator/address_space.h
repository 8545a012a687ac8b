// Device addresses without memory: a range of the process's address space that cannot be read.
#pragma once

#include <cstddef>
#include <map>
#include <random>

#include "emulator/settings.h"

namespace hpo::emulator {

// Hands out addresses in pages of 2 MiB, for every card together. Not safe for threads.
class AddressSpace {
 public:
  static constexpr size_t kPage = size_t{2} << 20;

  // `bytes` of addresses; rising ones begin again at the start once the end is reached (an H200
  // with growing segments reaches it after some 190 ranges).
  explicit AddressSpace(AddressOrder order, size_t bytes = size_t{32} << 40)
      : order_(order), bytes_(bytes) {}
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // An address with `bytes` behind it (rounded up to pages) that nobody has.
  char* Take(size_t bytes);
  void Give(const void* address);

  // Whether `address` is one of a device's, given out or not.
  bool Contains(const void* address) const;

  // Where the range of `address` begins, null where it is in none.
  char* StartOf(const void* address) const;

 private:
  void Map();
  size_t FirstGap(size_t from, size_t bytes) const;
  size_t Anywhere(size_t bytes);
  bool IsFree(size_t start, size_t bytes) const;
  size_t Offset(const void* address) const;

  const AddressOrder order_;
  const size_t bytes_;
  void* space_ = nullptr;  // mapped by the first Take: who reads NVML alone needs none
  char* base_ = nullptr;
  size_t next_ = 0;                 // kRising: behind the last; else 0
  std::mt19937_64 random_{1};       // kShuffled
  std::map<size_t, size_t> taken_;  // start -> bytes
};

size_t RoundUpToPage(size_t bytes);

}  // namespace hpo::emulator
