#include "memory/allocator/allocator_model.h"

#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

using Block = AllocatorModel::Block;
using Blocks = std::vector<std::pair<Bytes, bool>>;

Bytes KibOf(double kib) { return Bytes{static_cast<int64_t>(kib * 1024)}; }

TEST(AllocatorModel, RoundsToHalfAKibibyteAndTakesTheSegmentOfTheSize) {
  struct Case {
    Bytes request;
    Bytes block;
    Bytes segment;
  };
  const Case cases[] = {
      {Bytes{0}, Bytes{512}, MiB(2)},
      {Bytes{1}, Bytes{512}, MiB(2)},
      {Bytes{1000}, Bytes{1024}, MiB(2)},
      {MiB(1), MiB(1), MiB(2)},
      {MiB(1) + Bytes{1}, MiB(1) + Bytes{512}, MiB(20)},
      {MiB(5), MiB(5), MiB(20)},
      {MiB(10) - Bytes{512}, MiB(10) - Bytes{512}, MiB(20)},
      {MiB(10), MiB(10), MiB(10)},
      // A rest of exactly 1 MiB is not split off: the block is the segment.
      {MiB(11), MiB(12), MiB(12)},
      {MiB(11) - Bytes{512}, MiB(11) - Bytes{512}, MiB(12)},
      {MiB(30) + Bytes{1}, MiB(30) + Bytes{512}, MiB(32)},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.request.count);
    AllocatorModel allocator;
    ASSERT_TRUE(allocator.Allocate(c.request).has_value());
    EXPECT_EQ(allocator.stats().allocated, c.block);
    EXPECT_EQ(allocator.stats().reserved, c.segment);
  }
}

TEST(AllocatorModel, LeavesTheRestOfASegmentToTheNextRequest) {
  AllocatorModel allocator;
  allocator.Allocate(MiB(5));
  const auto segments = allocator.Snapshot();
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].blocks, (Blocks{{MiB(5), true}, {MiB(15), false}}));
  allocator.Allocate(MiB(15));
  EXPECT_EQ(allocator.stats().reserved, MiB(20));
}

TEST(AllocatorModel, MergesFreedNeighboursInAnyOrder) {
  const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}};
  for (const auto& order : orders) {
    AllocatorModel allocator;
    Block blocks[3];
    for (Block& block : blocks) block = *allocator.Allocate(MiB(4));
    for (const int i : order) allocator.Free(blocks[i]);
    EXPECT_EQ(allocator.Snapshot()[0].blocks, (Blocks{{MiB(20), false}}));
    EXPECT_EQ(allocator.stats().allocated, Bytes{});
    EXPECT_EQ(allocator.stats().allocated_peak, MiB(12));
  }
}

TEST(AllocatorModel, TakesTheSmallestBlockThatFitsAndTheLowestAddressOfEquals) {
  AllocatorModel allocator;
  // Three segments whose free blocks are 12, 10 and 10 MiB.
  const Block a = *allocator.Allocate(MiB(12));
  const Block b = *allocator.Allocate(MiB(10));
  const Block c = *allocator.Allocate(MiB(10));
  allocator.Free(c);
  allocator.Free(a);
  allocator.Free(b);
  const Block first = *allocator.Allocate(MiB(10));
  auto segments = allocator.Snapshot();
  EXPECT_EQ(segments[0].blocks, (Blocks{{MiB(12), false}}));
  EXPECT_EQ(segments[1].blocks, (Blocks{{MiB(10), true}}));
  EXPECT_EQ(segments[2].blocks, (Blocks{{MiB(10), false}}));
  allocator.Free(first);
  allocator.Allocate(MiB(11));  // 12 MiB block, rest of 1 MiB stays inside
  segments = allocator.Snapshot();
  EXPECT_EQ(segments[0].blocks, (Blocks{{MiB(12), true}}));
}

TEST(AllocatorModel, KeepsStreamsAndPoolsApart) {
  AllocatorModel allocator;
  allocator.Free(*allocator.Allocate(MiB(10), /*stream=*/0));
  allocator.Allocate(MiB(10), /*stream=*/1);
  EXPECT_EQ(allocator.stats().reserved, MiB(20));
  // A small request never takes from a large segment.
  allocator.Allocate(KiB(1), /*stream=*/0);
  EXPECT_EQ(allocator.stats().reserved, MiB(22));
}

TEST(AllocatorModel, FreesCachedSegmentsBeforeItGivesUp) {
  AllocatorModel allocator({.limit = MiB(30)});
  allocator.Free(*allocator.Allocate(MiB(20)));
  ASSERT_TRUE(allocator.Allocate(MiB(22)).has_value());
  EXPECT_EQ(allocator.stats().num_retries, 1);
  EXPECT_EQ(allocator.stats().num_ooms, 0);
  EXPECT_EQ(allocator.stats().reserved, MiB(22));
  EXPECT_EQ(allocator.stats().reserved_peak, MiB(22));
  EXPECT_FALSE(allocator.Allocate(MiB(10)).has_value());
  EXPECT_EQ(allocator.stats().num_ooms, 1);
  EXPECT_EQ(allocator.stats().lacking, MiB(2));
  EXPECT_EQ(allocator.stats().allocated, MiB(22));
  allocator.SetLimit(MiB(32));
  EXPECT_TRUE(allocator.Allocate(MiB(10)).has_value());
}

TEST(AllocatorModel, RunsOutWithEnoughFreeBytesInPieces) {
  AllocatorModel allocator({.limit = MiB(20)});
  std::vector<Block> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(*allocator.Allocate(MiB(2)));
  for (size_t i = 0; i < blocks.size(); i += 2) allocator.Free(blocks[i]);
  for (const size_t i : {1, 3}) allocator.Free(blocks[i]);
  EXPECT_EQ(allocator.stats().reserved - allocator.stats().allocated, MiB(14));
  EXPECT_FALSE(allocator.Allocate(MiB(12)).has_value());
  EXPECT_TRUE(allocator.Allocate(MiB(10)).has_value());
}

TEST(AllocatorModel, EmptyCacheReturnsOnlyWholeSegments) {
  AllocatorModel allocator;
  const Block small = *allocator.Allocate(KiB(4));
  const Block large = *allocator.Allocate(MiB(40));
  const Block part = *allocator.Allocate(MiB(2));
  const Block rest = *allocator.Allocate(MiB(3));
  allocator.Free(small);
  allocator.Free(large);
  allocator.Free(part);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.stats().reserved, MiB(20));  // `rest` keeps its segment
  allocator.Free(rest);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.stats().reserved, Bytes{});
  EXPECT_TRUE(allocator.Snapshot().empty());
}

TEST(AllocatorModel, MaxSplitSizeKeepsLargeBlocksWhole) {
  AllocatorModel allocator({.max_split_bytes = MiB(64).count, .limit = MiB(250)});
  allocator.Free(*allocator.Allocate(MiB(100)));
  // Smaller than the split size: not from the large block.
  allocator.Allocate(MiB(30));
  EXPECT_EQ(allocator.stats().reserved, MiB(130));
  // Oversize: only from a block less than 20 MiB larger, which is then not split.
  allocator.Allocate(MiB(70));
  EXPECT_EQ(allocator.stats().reserved, MiB(200));
  const Block whole = *allocator.Allocate(MiB(90));
  EXPECT_EQ(allocator.stats().allocated, MiB(200));
  allocator.Free(whole);
  // Not enough room: one oversize block goes back, without the full retry.
  EXPECT_TRUE(allocator.Allocate(MiB(75)).has_value());
  EXPECT_EQ(allocator.stats().num_retries, 0);
  EXPECT_EQ(allocator.stats().reserved, MiB(176));
}

TEST(AllocatorModel, SmallRequestsLookForOversizeBlocksInTheirOwnPool) {
  AllocatorModel allocator({.max_split_bytes = MiB(64).count, .limit = MiB(101)});
  allocator.Free(*allocator.Allocate(MiB(100)));
  EXPECT_TRUE(allocator.Allocate(KiB(1)).has_value());
  EXPECT_EQ(allocator.stats().num_retries, 1);
}

// 50 MiB that are free for longer than 40 MiB; with 80 MiB of other segments above 120 MiB.
struct Collecting {
  explicit Collecting(const AllocatorOptions& options) : allocator(options) {
    allocator.Allocate(MiB(4), /*stream=*/1);
    const Block old = *allocator.Allocate(MiB(50));
    const Block young = *allocator.Allocate(MiB(40));
    allocator.Free(old);
    for (int i = 0; i < 10; ++i) allocator.Free(*allocator.Allocate(MiB(4), /*stream=*/1));
    allocator.Free(young);
    allocator.Allocate(MiB(60));  // 110 MiB so far: nothing is freed
  }
  AllocatorModel allocator;
};

TEST(AllocatorModel, GarbageCollectionFreesWhatIsUnusedForLongest) {
  Collecting c({.garbage_collection_threshold = 0.6, .limit = MiB(200)});
  EXPECT_EQ(c.allocator.stats().reserved, MiB(170));
  c.allocator.Allocate(MiB(20), /*stream=*/1);
  EXPECT_EQ(c.allocator.stats().reserved, MiB(140));  // the 50 MiB went
}

// All of a round go, though the first of them would do; the next round has another mean.
TEST(AllocatorModel, GarbageCollectionFreesAllThatAreNoYoungerThanTheMean) {
  AllocatorModel allocator({.garbage_collection_threshold = 0.5, .limit = MiB(200)});
  std::vector<Block> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*allocator.Allocate(MiB(30)));
  for (const Block block : blocks) allocator.Free(block);  // all of one age
  allocator.Allocate(MiB(20), /*stream=*/1);
  EXPECT_EQ(allocator.stats().reserved, MiB(20));
}

TEST(AllocatorModel, SmallRequestsDoNotAgeLargeSegments) {
  AllocatorModel allocator({.garbage_collection_threshold = 0.5, .limit = MiB(200)});
  const Block first = *allocator.Allocate(MiB(40));
  const Block second = *allocator.Allocate(MiB(40));
  allocator.Free(first);
  for (int i = 0; i < 10; ++i) allocator.Free(*allocator.Allocate(KiB(1)));
  allocator.Free(second);
  allocator.SetLimit(MiB(150));
  allocator.Allocate(MiB(20), /*stream=*/1);
  EXPECT_EQ(allocator.stats().reserved, MiB(22));  // both went
}

TEST(AllocatorModel, CollectsNoGarbageOnAllOfACard) {
  const AllocatorOptions::Card card{.total = MiB(200), .left = MiB(200)};
  for (const Bytes limit : {MiB(200), Bytes{AllocatorOptions::kUnlimited}}) {
    Collecting c({.garbage_collection_threshold = 0.6, .limit = limit, .card = card});
    c.allocator.Allocate(MiB(20), /*stream=*/1);
    EXPECT_EQ(c.allocator.stats().reserved, MiB(190));
  }
}

TEST(AllocatorModel, RunsOutWhereTheCardEnds) {
  for (const bool expandable : {false, true}) {
    AllocatorModel allocator(
        {.expandable_segments = expandable, .card = {.total = MiB(120), .left = MiB(100)}});
    allocator.Free(*allocator.Allocate(MiB(60)));
    EXPECT_TRUE(allocator.Allocate(MiB(80)).has_value());
    EXPECT_EQ(allocator.stats().num_retries, expandable ? 0 : 1);
    EXPECT_FALSE(allocator.Allocate(MiB(30)).has_value());
    EXPECT_EQ(allocator.stats().lacking, expandable ? MiB(20) : MiB(10));
  }
}

TEST(AllocatorModel, APrivatePoolAndTheOthersFreeNothingOfEachOther) {
  AllocatorModel allocator({.card = {.total = MiB(100), .left = MiB(100)}});
  allocator.MakePrivate(1);
  allocator.Free(*allocator.Allocate(MiB(60), 0));
  EXPECT_FALSE(allocator.Allocate(MiB(60), 1).has_value());  // while a graph is captured
  EXPECT_EQ(allocator.stats().num_retries, 0);
  allocator.EmptyCache();
  allocator.Free(*allocator.Allocate(MiB(60), 1));
  EXPECT_FALSE(allocator.Allocate(MiB(60), 0).has_value());
  EXPECT_EQ(allocator.stats().num_retries, 1);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.stats().reserved, MiB(60));
  allocator.EmptyCacheOf(1);
  EXPECT_EQ(allocator.stats().reserved, Bytes{});
}

TEST(AllocatorModel, RoundsUpToDivisionsOfPowersOfTwo) {
  const std::pair<Bytes, Bytes> cases[] = {
      {KibOf(1), KibOf(1)},        // not above 512 x 4: to 512 B only
      {KibOf(2.1), KibOf(2.5)},    // 2 KiB + 1/4
      {KibOf(1200), KibOf(1280)},  // 1 MiB + 1/4
      {MiB(4), MiB(4)},           {MiB(4) + Bytes{1}, MiB(5)}, {MiB(7) + Bytes{1}, MiB(8)},
  };
  for (const auto& [request, block] : cases) {
    AllocatorModel allocator({.roundup_power2_divisions = 4});
    allocator.Allocate(request);
    EXPECT_EQ(allocator.stats().allocated, block) << request.count;
  }
}

TEST(AllocatorModel, ExpandableSegmentsGrowByPages) {
  AllocatorModel allocator({.expandable_segments = true});
  const Block a = *allocator.Allocate(MiB(30));
  EXPECT_EQ(allocator.stats().reserved, MiB(40));
  EXPECT_EQ(allocator.stats().allocated, MiB(30));
  const Block b = *allocator.Allocate(MiB(30));  // 10 left, 20 more mapped
  EXPECT_EQ(allocator.stats().reserved, MiB(60));
  allocator.Allocate(KiB(3));
  EXPECT_EQ(allocator.stats().reserved, MiB(62));
  allocator.Free(a);
  allocator.Free(b);
  EXPECT_EQ(allocator.stats().reserved, MiB(62));
  allocator.Allocate(MiB(70));  // grows what is free
  EXPECT_EQ(allocator.stats().reserved, MiB(82));
  EXPECT_EQ(allocator.Snapshot().size(), 2U);
}

TEST(AllocatorModel, ExpandableSegmentsGiveBackWholePagesWhenShort) {
  AllocatorModel allocator({.expandable_segments = true, .limit = MiB(100)});
  const Block a = *allocator.Allocate(MiB(50));
  const Block b = *allocator.Allocate(MiB(10));
  allocator.Free(a);  // pages 0-40 can go, 40-50 share a page with b
  ASSERT_TRUE(allocator.Allocate(MiB(72)).has_value());
  EXPECT_EQ(allocator.stats().num_retries, 1);
  EXPECT_EQ(allocator.stats().allocated, MiB(82));
  EXPECT_EQ(allocator.stats().reserved, MiB(100));
  EXPECT_FALSE(allocator.Allocate(MiB(20)).has_value());
  EXPECT_EQ(allocator.stats().lacking, MiB(20));
  allocator.Free(b);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.stats().reserved, MiB(80));
}

// The limit is asked for a segment of the request's size; pages then come whole.
TEST(AllocatorModel, ExpandableSegmentsMayExceedALimitByLessThanAPage) {
  AllocatorModel allocator({.expandable_segments = true, .limit = MiB(90)});
  ASSERT_TRUE(allocator.Allocate(MiB(84)).has_value());
  EXPECT_EQ(allocator.stats().reserved, MiB(100));
  EXPECT_TRUE(allocator.Allocate(MiB(16)).has_value());
  // A large request asks for 20 MiB, whatever part of it is there already.
  AllocatorModel other({.expandable_segments = true, .limit = MiB(110)});
  other.Allocate(MiB(84));
  EXPECT_FALSE(other.Allocate(MiB(17)).has_value());
}

TEST(AllocatorModel, ARangeOfAddressesEndsAtNineEighthsOfTheCard) {
  const auto ranges = [](const AllocatorOptions::Card& card) {
    AllocatorModel allocator({.expandable_segments = true, .card = card});
    const Block first = *allocator.Allocate(MiB(60));
    allocator.Allocate(MiB(20));
    allocator.Free(first);
    allocator.EmptyCache();  // 60 MiB of addresses are free, before what is held
    allocator.Allocate(MiB(70));
    return allocator.Snapshot().size();
  };
  EXPECT_EQ(ranges({}), 1U);
  EXPECT_EQ(ranges({.total = MiB(160), .left = MiB(160)}), 1U);
  EXPECT_EQ(ranges({.total = MiB(120), .left = MiB(120)}), 2U);
}

TEST(AllocatorModel, ARangeThatIsGivenBackIsGone) {
  AllocatorModel allocator({.expandable_segments = true});
  allocator.Free(*allocator.Allocate(MiB(30)));
  allocator.EmptyCache();
  allocator.Allocate(MiB(30));
  ASSERT_EQ(allocator.Snapshot().size(), 1U);
  EXPECT_GT(allocator.Snapshot()[0].address, MiB(60).count);
}

TEST(AllocatorModel, RefusesOptionsThatTorchRefuses) {
  EXPECT_EQ(InvalidOption({}), "");
  const AllocatorOptions wrong[] = {
      {.max_split_bytes = MiB(20).count},     {.garbage_collection_threshold = 1.0},
      {.garbage_collection_threshold = -0.1}, {.roundup_power2_divisions = 3},
      {.roundup_power2_divisions = -4},       {.limit = Bytes{-1}},
      {.card = {.total = Bytes{-1}}},         {.card = {.left = Bytes{-1}}}};
  for (const AllocatorOptions& options : wrong) {
    EXPECT_NE(InvalidOption(options), "");
  }
}

// Random requests and frees under every combination of options: sums are right, segments are tiled
// without gaps, no two free neighbours are left, the limit holds, and a second run is the same.
class AllocatorModelProperty : public testing::TestWithParam<AllocatorOptions> {};

Bytes RandomSize(std::mt19937_64& random) {
  const int magnitude = std::uniform_int_distribution(0, 26)(random);
  return Bytes{std::uniform_int_distribution<int64_t>(1, int64_t{1} << magnitude)(random)};
}

void CheckConsistent(const AllocatorModel& allocator, const AllocatorOptions& options) {
  Bytes allocated;
  Bytes reserved;
  for (const AllocatorModel::Segment& segment : allocator.Snapshot()) {
    Bytes sum;
    bool free_before = false;
    for (const auto& [size, is_allocated] : segment.blocks) {
      ASSERT_GT(size.count, 0);
      ASSERT_EQ(size.count % 512, 0);
      ASSERT_FALSE(!options.expandable_segments && free_before && !is_allocated);
      free_before = !is_allocated;
      sum += size;
      if (is_allocated) allocated += size;
    }
    ASSERT_EQ(sum, segment.size);
    reserved += segment.size;
  }
  ASSERT_EQ(allocated, allocator.stats().allocated);
  ASSERT_EQ(reserved, allocator.stats().reserved);
  const Bytes excess = options.expandable_segments ? MiB(20) - Bytes{1} : Bytes{};
  ASSERT_LE(reserved - excess, options.limit);
  ASSERT_LE(reserved, options.card.left);
}

AllocatorStats RandomRun(const AllocatorOptions& options, uint64_t seed) {
  std::mt19937_64 random(seed);
  AllocatorModel allocator(options);
  std::vector<Block> held;
  for (int i = 0; i < 3000; ++i) {
    const auto stream = static_cast<uint8_t>(random() % 2);
    if (held.empty() || random() % 5 < 3) {
      const auto block = allocator.Allocate(RandomSize(random), stream);
      if (block.has_value()) held.push_back(*block);
    } else {
      std::swap(held[random() % held.size()], held.back());
      allocator.Free(held.back());
      held.pop_back();
    }
    if (i % 100 == 0) CheckConsistent(allocator, options);
  }
  for (const Block block : held) allocator.Free(block);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.stats().allocated, Bytes{});
  EXPECT_EQ(allocator.stats().reserved, Bytes{});
  return allocator.stats();
}

TEST_P(AllocatorModelProperty, StaysConsistent) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    const AllocatorStats first = RandomRun(GetParam(), seed);
    EXPECT_EQ(first, RandomRun(GetParam(), seed));
    EXPECT_GE(first.reserved_peak, first.allocated_peak);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, AllocatorModelProperty,
    testing::Values(AllocatorOptions{}, AllocatorOptions{.limit = MiB(300)},
                    AllocatorOptions{.expandable_segments = true},
                    AllocatorOptions{.expandable_segments = true, .limit = MiB(300)},
                    AllocatorOptions{.expandable_segments = true,
                                     .card = {.total = MiB(320), .left = MiB(300)}},
                    AllocatorOptions{.expandable_segments = true,
                                     .max_split_bytes = MiB(32).count,
                                     .garbage_collection_threshold = 0.6,
                                     .roundup_power2_divisions = 4,
                                     .limit = MiB(300)},
                    AllocatorOptions{.max_split_bytes = MiB(32).count, .limit = MiB(300)},
                    AllocatorOptions{.garbage_collection_threshold = 0.6, .limit = MiB(300)},
                    AllocatorOptions{.roundup_power2_divisions = 8}));

}  // namespace
}  // namespace hpo::memory
