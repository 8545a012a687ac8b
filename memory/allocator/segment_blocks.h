// The blocks of an allocator's segments, and the pools of those that are free.
// Value type.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "memory/allocator/block_list.h"
#include "memory/allocator/free_pool.h"

namespace hpo::memory {

// Sizes here and below are in bytes.
inline constexpr int64_t kSmallSegment = int64_t{2} << 20;
inline constexpr int64_t kLargeSegment = int64_t{20} << 20;

inline int64_t RoundUp(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

struct SegmentRequest {
  int64_t size = 0;          // rounded
  int64_t segment_size = 0;  // what a new segment would have
  uint16_t stream = 0;
  bool small = false;
};

class SegmentBlocks : public BlockList {
 public:
  struct Pools {
    FreePool small;
    FreePool large;
    bool is_private = false;  // of a CUDA graph, not of a stream alone
  };

  FreePool& PoolOf(bool small, uint16_t stream);
  // Those of a stream that nothing was requested on yet are empty.
  Pools& PoolsOf(uint16_t stream);
  const std::vector<Pools>& pools() const { return pools_; }  // by stream

  // Puts a free block into its pool, or takes it out. `now` is kept as freed_at.
  void InsertFree(Index block, int64_t now = 0);
  void EraseFree(Index block);
  // Joins a free block that is in no pool with its free neighbours; the result is in no pool.
  Index MergeFree(Index block);

  bool IsWholeSegment(Index block) const {
    return (*this)[block].previous == kNone && (*this)[block].next == kNone;
  }
  // Whether there is a block behind or before (`neighbour`) in this state.
  bool IsIn(SegmentBlock::State state, Index neighbour) const {
    return neighbour != kNone && (*this)[neighbour].state == state;
  }

  // Segments in address order; for each its size and its blocks as (size, is allocated).
  // Expandable: unmapped address space is left out.
  struct Segment {
    int64_t address = 0;
    Bytes size;
    std::vector<std::pair<Bytes, bool>> blocks;
  };
  std::vector<Segment> Snapshot() const;

 private:
  std::vector<Pools> pools_;
};

}  // namespace hpo::memory
