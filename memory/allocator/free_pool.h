// The free blocks of one pool of an allocator: best fit in a few comparisons, whatever their
// number. Value type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hpo::memory {

class FreePool {
 public:
  struct Entry {
    int64_t size = 0;
    int64_t address = 0;
    int32_t block = 0;
    bool operator==(const Entry&) const = default;
  };

  // Where an entry is; until the pool changes.
  struct Place {
    size_t bin = kNumBins;
    size_t index = 0;
    explicit operator bool() const { return bin < kNumBins; }
  };

  // Sizes are at least 512; no two entries have one address.
  void Insert(const Entry& entry);
  // The entry of this size and address, which is there.
  void Erase(int64_t size, int64_t address);
  void Erase(Place place);

  // The smallest of at least `size`, of equal ones that of the lowest address; none: false.
  Place BestFit(int64_t size) const;
  // By size, then address.
  Place After(Place place) const;
  const Entry& At(Place place) const { return bins_[place.bin][place.index]; }
  std::vector<Entry> Sorted() const;

 private:
  // Two for each power of two from 512 on; the last one takes all above.
  static constexpr size_t kNumBins = 64;

  static size_t BinOf(int64_t size);
  Place FirstFrom(size_t bin) const;

  // Each from the largest down, of equal ones from the highest address down: what is taken first is
  // last.
  std::array<std::vector<Entry>, kNumBins> bins_;
  uint64_t filled_ = 0;  // a bit for each bin that has entries
};

}  // namespace hpo::memory
