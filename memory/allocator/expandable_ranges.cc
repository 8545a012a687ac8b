// Tested by tests/memory/allocator/allocator_model_test.cc.
#include "memory/allocator/expandable_ranges.h"

#include <algorithm>

namespace hpo::memory {
namespace {

// Whole pages; more than any device has, and few enough that addresses cannot overflow.
constexpr int64_t kLargestRange = kLargeSegment << 26;

int64_t PageSize(bool small) { return small ? kSmallSegment : kLargeSegment; }

// Addresses that an expandable segment reserves for what it may become.
int64_t RangeSize(int64_t card_total, bool small) {
  if (card_total >= kLargestRange / 2) return kLargestRange;
  return RoundUp(card_total + card_total / 8, PageSize(small));
}

}  // namespace

FreePool::Place ExpandableRanges::SmallestGrown(const SegmentBlocks& blocks, const FreePool& pool,
                                                FreePool::Place found) {
  const auto grown = [&](FreePool::Place place) {
    const Block next = blocks[pool.At(place).block].next;
    const bool grows = blocks.IsIn(State::kUnmapped, next);
    return pool.At(place).size + (grows ? blocks[next].size : 0);
  };
  for (FreePool::Place next = pool.After(found); next; next = pool.After(next)) {
    if (grown(next) >= grown(found)) break;
    found = next;
  }
  return found;
}

// A free block with unmapped space behind it, or unmapped space, of the request's size or more.
ExpandableRanges::Block ExpandableRanges::FindRoom(const Memory& memory,
                                                   const SegmentRequest& request) {
  const SegmentBlocks& blocks = memory.blocks;
  for (const auto& [address, block] : unmapped_) {
    if (blocks[block].stream != request.stream || blocks[block].small != request.small) continue;
    const Block before = blocks[block].previous;
    const Block start = blocks.IsIn(State::kFree, before) ? before : block;
    int64_t room = 0;
    for (Block b = start; b != kNone && blocks[b].state != State::kAllocated && room < request.size;
         b = blocks[b].next) {
      room += blocks[b].size;
    }
    if (room >= request.size) return start;
  }
  return NewRange(memory, request);
}

ExpandableRanges::Block ExpandableRanges::NewRange(const Memory& memory,
                                                   const SegmentRequest& request) {
  const int64_t size = RangeSize(memory.card.total.count, request.small);
  const Block range = memory.blocks.Add({.address = next_address_,
                                         .size = size,
                                         .state = State::kUnmapped,
                                         .stream = request.stream,
                                         .small = request.small});
  unmapped_.emplace(next_address_, range);
  next_address_ += RoundUp(size, kLargeSegment);  // so that pages begin at their multiples
  return range;
}

// The limit is asked once, for a segment as the native allocator would take it; pages then come one
// piece after the other, and those that came stay where a later one does not.
ExpandableRanges::Block ExpandableRanges::Grow(const Memory& memory, const SegmentRequest& request,
                                               Bytes limit) {
  if (!memory.held.Allows(limit, request.segment_size)) return kNone;
  Block block = FindRoom(memory, request);
  if (memory.blocks[block].state == State::kUnmapped) {
    block = Map(memory, block, std::min(memory.blocks[block].size, request.size));
  }
  while (block != kNone && memory.blocks[block].size < request.size) {
    const Block next = memory.blocks[block].next;
    if (next == kNone) return kNone;
    block = Map(memory, next,
                std::min(request.size - memory.blocks[block].size, memory.blocks[next].size));
  }
  if (block != kNone) memory.blocks.EraseFree(block);
  return block;
}

ExpandableRanges::Block ExpandableRanges::Map(const Memory& memory, Block unmapped, int64_t size) {
  const int64_t mapped = std::min(RoundUp(size, PageSize(memory.blocks[unmapped].small)),
                                  memory.blocks[unmapped].size);
  if (!memory.held.Allows(memory.card.left, mapped)) return kNone;
  memory.held.Reserve(mapped);
  unmapped_.erase(memory.blocks[unmapped].address);
  if (mapped < memory.blocks[unmapped].size) {
    const Block rest = memory.blocks.SplitOff(unmapped, mapped, State::kUnmapped);
    unmapped_.emplace(memory.blocks[rest].address, rest);
  }
  memory.blocks[unmapped].state = State::kFree;
  const Block merged = memory.blocks.MergeFree(unmapped);
  memory.blocks.InsertFree(merged);
  return merged;
}

void ExpandableRanges::Unmap(const Memory& memory, Block block) {
  const int64_t page = PageSize(memory.blocks[block].small);
  const int64_t start = RoundUp(memory.blocks[block].address, page);
  const int64_t end = (memory.blocks[block].address + memory.blocks[block].size) / page * page;
  if (start >= end) return;
  memory.blocks.EraseFree(block);
  if (start > memory.blocks[block].address) {
    const Block pages =
        memory.blocks.SplitOff(block, start - memory.blocks[block].address, State::kFree);
    memory.blocks.InsertFree(block);
    block = pages;
  }
  if (end < memory.blocks[block].address + memory.blocks[block].size) {
    memory.blocks.InsertFree(
        memory.blocks.SplitOff(block, end - memory.blocks[block].address, State::kFree));
  }
  memory.blocks[block].state = State::kUnmapped;
  memory.held.Return(memory.blocks[block].size);
  const Block next = memory.blocks[block].next;
  if (memory.blocks.IsIn(State::kUnmapped, next)) {
    unmapped_.erase(memory.blocks[next].address);
    memory.blocks.JoinNext(block);
  }
  const Block before = memory.blocks[block].previous;
  if (memory.blocks.IsIn(State::kUnmapped, before)) {
    memory.blocks.JoinNext(before);
    block = before;
  }
  if (memory.blocks.IsWholeSegment(block)) {
    unmapped_.erase(memory.blocks[block].address);
    memory.blocks.Remove(block);
  } else {
    unmapped_.emplace(memory.blocks[block].address, block);
  }
}

}  // namespace hpo::memory
