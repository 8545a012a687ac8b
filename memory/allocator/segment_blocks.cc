#include "memory/allocator/segment_blocks.h"

#include <algorithm>

namespace hpo::memory {

SegmentBlocks::Pools& SegmentBlocks::PoolsOf(uint16_t stream) {
  if (pools_.size() <= stream) pools_.resize(size_t{stream} + 1);
  return pools_[stream];
}

FreePool& SegmentBlocks::PoolOf(bool small, uint16_t stream) {
  Pools& pools = PoolsOf(stream);
  return small ? pools.small : pools.large;
}

void SegmentBlocks::InsertFree(Index block, int64_t now) {
  SegmentBlock& data = (*this)[block];
  data.freed_at = now;
  PoolOf(data.small, data.stream)
      .Insert({.size = data.size, .address = data.address, .block = block});
}

void SegmentBlocks::EraseFree(Index block) {
  const SegmentBlock& data = (*this)[block];
  PoolOf(data.small, data.stream).Erase(data.size, data.address);
}

SegmentBlocks::Index SegmentBlocks::MergeFree(Index block) {
  const Index next = (*this)[block].next;
  if (IsIn(SegmentBlock::State::kFree, next)) {
    EraseFree(next);
    JoinNext(block);
  }
  const Index before = (*this)[block].previous;
  if (!IsIn(SegmentBlock::State::kFree, before)) return block;
  EraseFree(before);
  JoinNext(before);
  return before;
}

std::vector<SegmentBlocks::Segment> SegmentBlocks::Snapshot() const {
  std::vector<Segment> segments;
  for (Index first = 0; first < end(); ++first) {
    if ((*this)[first].size == 0 || (*this)[first].previous != kNone) continue;
    Segment segment{.address = (*this)[first].address};
    for (Index block = first; block != kNone; block = (*this)[block].next) {
      if ((*this)[block].state == SegmentBlock::State::kUnmapped) continue;
      segment.size.count += (*this)[block].size;
      segment.blocks.emplace_back(Bytes{(*this)[block].size},
                                  (*this)[block].state == SegmentBlock::State::kAllocated);
    }
    if (segment.size > Bytes{}) segments.push_back(std::move(segment));
  }
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.address < b.address; });
  return segments;
}

}  // namespace hpo::memory
