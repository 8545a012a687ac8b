// The blocks that segments of an allocator are cut into. Neighbours in a segment are linked, in the
// order of their addresses. Value type; every call takes the same time, whatever the number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hpo::memory {

struct SegmentBlock {
  enum class State : uint8_t { kAllocated, kFree, kUnmapped };

  int64_t address = 0;
  int64_t size = 0;
  int32_t previous = -1;  // neighbours in the segment
  int32_t next = -1;
  int64_t freed_at = 0;  // when it came into its pool: the pool's requests until then
  State state = State::kFree;
  uint16_t stream = 0;
  bool small = false;  // of the pool for small requests
};

class BlockList {
 public:
  using Index = int32_t;
  static constexpr Index kNone = -1;

  SegmentBlock& operator[](Index block) { return blocks_[static_cast<size_t>(block)]; }
  const SegmentBlock& operator[](Index block) const { return blocks_[static_cast<size_t>(block)]; }

  // A block of size 0 is not there (any more).
  Index end() const { return static_cast<Index>(blocks_.size()); }

  Index Add(const SegmentBlock& block);
  // A block without neighbours.
  void Remove(Index block);

  // Leaves the first `size` bytes in `block`; the rest becomes the block behind it, in `state`.
  Index SplitOff(Index block, int64_t size, SegmentBlock::State state);

  // The block behind becomes a part of `block`.
  void JoinNext(Index block);

 private:
  std::vector<SegmentBlock> blocks_;
  std::vector<Index> unused_;
};

}  // namespace hpo::memory
