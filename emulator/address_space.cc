#include "emulator/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "emulator/report.h"

namespace hpo::emulator {
size_t RoundUpToPage(size_t bytes) {
  return (bytes + AddressSpace::kPage - 1) / AddressSpace::kPage * AddressSpace::kPage;
}

AddressSpace::~AddressSpace() {
  if (space_ != nullptr) munmap(space_, bytes_ + kPage);
}

void AddressSpace::Map() {
  space_ =
      mmap(nullptr, bytes_ + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space_ == MAP_FAILED) {
    EndWith("no " + std::to_string(bytes_ >> 40) +
            " TiB of addresses (ulimit -v?): " + std::string(std::strerror(errno)));
  }
  base_ = reinterpret_cast<char*>(RoundUpToPage(reinterpret_cast<size_t>(space_)));
}

size_t AddressSpace::Offset(const void* address) const {
  return static_cast<size_t>(static_cast<const char*>(address) - base_);
}

bool AddressSpace::Contains(const void* address) const {
  return base_ != nullptr && address >= base_ && address < base_ + bytes_;
}

bool AddressSpace::IsFree(size_t start, size_t bytes) const {
  const auto after = taken_.lower_bound(start);
  if (after != taken_.end() && after->first < start + bytes) return false;
  if (after == taken_.begin()) return true;
  const auto before = std::prev(after);
  return before->first + before->second <= start;
}

size_t AddressSpace::FirstGap(size_t from, size_t bytes) const {
  size_t start = from;
  auto range = taken_.upper_bound(start);
  if (range != taken_.begin()) --range;
  for (; range != taken_.end() && range->first < start + bytes; ++range) {
    start = std::max(start, range->first + range->second);
  }
  return start;
}

size_t AddressSpace::Anywhere(size_t bytes) {
  size_t start = 0;
  do {
    start = random_() % ((bytes_ - bytes) / kPage) * kPage;
  } while (!IsFree(start, bytes));
  return start;
}

char* AddressSpace::Take(size_t bytes) {
  if (space_ == nullptr) Map();
  bytes = RoundUpToPage(bytes);
  size_t start = order_ == AddressOrder::kShuffled ? Anywhere(bytes) : FirstGap(next_, bytes);
  if (start + bytes > bytes_) start = FirstGap(0, bytes);
  if (start + bytes > bytes_) EndWith("this process has used up its device addresses");
  if (order_ == AddressOrder::kRising) next_ = start + bytes;
  taken_[start] = bytes;
  return base_ + start;
}

void AddressSpace::Give(const void* address) { taken_.erase(Offset(address)); }

char* AddressSpace::StartOf(const void* address) const {
  if (!Contains(address)) return nullptr;
  const auto after = taken_.upper_bound(Offset(address));
  if (after == taken_.begin()) return nullptr;
  const auto& [start, bytes] = *std::prev(after);
  return Offset(address) < start + bytes ? base_ + start : nullptr;
}

}  // namespace hpo::emulator
