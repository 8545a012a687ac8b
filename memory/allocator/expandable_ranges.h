// Expandable segments: address ranges, one for each pool and stream or more, into which pages are
// mapped as they are needed. Value type.
#pragma once

#include <cstdint>
#include <map>

#include "common/base/bytes.h"
#include "memory/allocator/free_pool.h"
#include "memory/allocator/held_memory.h"
#include "memory/allocator/segment_blocks.h"

namespace hpo::memory {

class ExpandableRanges {
 public:
  using Block = BlockList::Index;

  // What the allocator holds; outlives the call.
  struct Memory {
    SegmentBlocks& blocks;
    HeldMemory& held;
    const CardMemory& card;
  };

  // Returns a free block of the request's size or more, in no pool; kNone when the limit or the
  // device has no place for it.
  Block Grow(const Memory& memory, const SegmentRequest& request, Bytes limit);

  // Returns the whole pages inside a free block to the device. Removes the range if no page of it
  // is mapped afterwards.
  void Unmap(const Memory& memory, Block block);

  // Returns the smallest block of `pool` from `found` on, where a block that can still grow counts
  // as large as it can become.
  static FreePool::Place SmallestGrown(const SegmentBlocks& blocks, const FreePool& pool,
                                       FreePool::Place found);

 private:
  static constexpr Block kNone = BlockList::kNone;
  using State = SegmentBlock::State;

  Block FindRoom(const Memory& memory, const SegmentRequest& request);
  Block NewRange(const Memory& memory, const SegmentRequest& request);
  // Maps at least `size` bytes at the start of an unmapped block and merges them with free
  // neighbours; kNone when the device has no more.
  Block Map(const Memory& memory, Block unmapped, int64_t size);

  std::map<int64_t, Block> unmapped_;  // address space without pages, by address
  int64_t next_address_ = 0;
};

}  // namespace hpo::memory
