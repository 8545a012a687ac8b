#include "memory/allocator/block_list.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

using Index = BlockList::Index;
using State = SegmentBlock::State;
using testing::ElementsAre;

// Sizes from `first` on, with links and addresses checked.
std::vector<int64_t> BlockSizes(const BlockList& blocks, Index first) {
  std::vector<int64_t> sizes;
  Index previous = BlockList::kNone;
  int64_t address = blocks[first].address;
  for (Index block = first; block != BlockList::kNone; block = blocks[block].next) {
    EXPECT_EQ(blocks[block].previous, previous);
    EXPECT_EQ(blocks[block].address, address);
    address += blocks[block].size;
    sizes.push_back(blocks[block].size);
    previous = block;
  }
  return sizes;
}

TEST(BlockList, SplitsAndJoinsNeighbours) {
  BlockList blocks;
  const Index first = blocks.Add({.address = 1000, .size = 100, .stream = 3, .small = true});
  const Index last = blocks.SplitOff(first, 70, State::kUnmapped);
  EXPECT_EQ(blocks[last].state, State::kUnmapped);
  EXPECT_EQ(blocks[last].stream, 3);
  EXPECT_TRUE(blocks[last].small);
  const Index middle = blocks.SplitOff(first, 50, State::kFree);
  EXPECT_THAT(BlockSizes(blocks, first), ElementsAre(50, 20, 30));
  blocks.JoinNext(first);
  EXPECT_EQ(blocks[middle].size, 0);
  EXPECT_THAT(BlockSizes(blocks, first), ElementsAre(70, 30));
  blocks.JoinNext(first);
  EXPECT_THAT(BlockSizes(blocks, first), ElementsAre(100));
}

TEST(BlockList, UsesThePlaceOfARemovedBlockAgain) {
  BlockList blocks;
  const Index gone = blocks.Add({.size = 10});
  const Index kept = blocks.Add({.address = 10, .size = 20});
  blocks.Remove(gone);
  EXPECT_EQ(blocks[gone].size, 0);
  EXPECT_EQ(blocks.Add({.address = 30, .size = 5}), gone);
  EXPECT_EQ(blocks[kept].size, 20);
  EXPECT_EQ(blocks.end(), 2);
}

}  // namespace
}  // namespace hpo::memory
