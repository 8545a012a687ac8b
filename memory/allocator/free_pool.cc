#include "memory/allocator/free_pool.h"

#include <algorithm>
#include <bit>

#include "common/base/status.h"

namespace hpo::memory {
namespace {

constexpr int kSmallestLog2 = 9;

bool ComesBefore(const FreePool::Entry& a, const FreePool::Entry& b) {
  return a.size != b.size ? a.size > b.size : a.address > b.address;
}

}  // namespace

size_t FreePool::BinOf(int64_t size) {
  const auto bits = static_cast<uint64_t>(size);
  const auto log2 = static_cast<int>(std::bit_width(bits)) - 1;
  const uint64_t upper_half = (bits >> (log2 - 1)) & 1;
  return std::min<size_t>(kNumBins - 1, 2 * static_cast<size_t>(log2 - kSmallestLog2) + upper_half);
}

void FreePool::Insert(const Entry& entry) {
  const size_t bin = BinOf(entry.size);
  std::vector<Entry>& entries = bins_[bin];
  entries.insert(std::upper_bound(entries.begin(), entries.end(), entry, ComesBefore), entry);
  filled_ |= uint64_t{1} << bin;
}

void FreePool::Erase(int64_t size, int64_t address) {
  const size_t bin = BinOf(size);
  const std::vector<Entry>& entries = bins_[bin];
  const Entry wanted{.size = size, .address = address};
  const auto found = std::lower_bound(entries.begin(), entries.end(), wanted, ComesBefore);
  HPO_CHECK(found != entries.end() && found->size == size && found->address == address);
  Erase(Place{bin, static_cast<size_t>(found - entries.begin())});
}

void FreePool::Erase(Place place) {
  std::vector<Entry>& entries = bins_[place.bin];
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(place.index));
  if (entries.empty()) filled_ &= ~(uint64_t{1} << place.bin);
}

FreePool::Place FreePool::FirstFrom(size_t bin) const {
  if (bin >= kNumBins) return {};
  const uint64_t from = filled_ >> bin << bin;
  if (from == 0) return {};
  const auto first = static_cast<size_t>(std::countr_zero(from));
  return {first, bins_[first].size() - 1};
}

FreePool::Place FreePool::BestFit(int64_t size) const {
  const size_t bin = BinOf(size);
  const std::vector<Entry>& entries = bins_[bin];
  const auto too_small = std::partition_point(
      entries.begin(), entries.end(), [size](const Entry& entry) { return entry.size >= size; });
  if (too_small == entries.begin()) return FirstFrom(bin + 1);
  return {bin, static_cast<size_t>(too_small - entries.begin()) - 1};
}

FreePool::Place FreePool::After(Place place) const {
  if (place.index > 0) return {place.bin, place.index - 1};
  return FirstFrom(place.bin + 1);
}

std::vector<FreePool::Entry> FreePool::Sorted() const {
  std::vector<Entry> sorted;
  for (Place place = FirstFrom(0); place; place = After(place)) sorted.push_back(At(place));
  return sorted;
}

}  // namespace hpo::memory
