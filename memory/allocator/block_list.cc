#include "memory/allocator/block_list.h"

namespace hpo::memory {

BlockList::Index BlockList::Add(const SegmentBlock& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return end() - 1;
  }
  const Index index = unused_.back();
  unused_.pop_back();
  (*this)[index] = block;
  return index;
}

void BlockList::Remove(Index block) {
  (*this)[block].size = 0;
  unused_.push_back(block);
}

BlockList::Index BlockList::SplitOff(Index block, int64_t size, SegmentBlock::State state) {
  SegmentBlock rest = (*this)[block];
  rest.address += size;
  rest.size -= size;
  rest.previous = block;
  rest.state = state;
  const Index behind = Add(rest);
  if (rest.next != kNone) (*this)[rest.next].previous = behind;
  (*this)[block].size = size;
  (*this)[block].next = behind;
  return behind;
}

void BlockList::JoinNext(Index block) {
  const Index gone = (*this)[block].next;
  (*this)[block].size += (*this)[gone].size;
  (*this)[block].next = (*this)[gone].next;
  if ((*this)[block].next != kNone) (*this)[(*this)[block].next].previous = block;
  Remove(gone);
}

}  // namespace hpo::memory
