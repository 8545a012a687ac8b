#include "memory/replay/least_memory.h"

#include "gtest/gtest.h"
#include "memory/replay/event_replay.h"

namespace hpo::memory {
namespace {

using Kind = RecordedEvent::Kind;

constexpr int64_t kUnitBytes = MiB(1).count;

// 80 MiB live, 120 MiB reserved: with 80 MiB the cache is freed for the last block.
RecordedDevice TwoSegments() {
  return {.private_pools = {false},
          .events = {{Kind::kAllocate, 0, 40 * kUnitBytes},
                     {Kind::kAllocate, 0, 30 * kUnitBytes},
                     {Kind::kFree, 0, 0},
                     {Kind::kAllocate, 0, 50 * kUnitBytes}},
          .num_allocations = 3};
}

TEST(LeastMemory, CountsWhatIsLiveWhereTheCacheIsFreed) {
  EXPECT_EQ(LeastMemory(TwoSegments(), {}, /*fraction=*/1.0, /*beyond=*/0), 80 * kUnitBytes);
}

TEST(LeastMemory, IsMoreThanWhatIsLiveWhereBlocksAreInTheWay) {
  // One block of each of two segments of 20 MiB stays in use, so that neither can be freed.
  RecordedDevice device{.private_pools = {false}, .num_allocations = 11};
  for (int i = 0; i < 10; ++i) device.events.push_back({Kind::kAllocate, 0, 4 * kUnitBytes});
  for (const int64_t block : {1, 2, 3, 4, 6, 7, 8, 9}) {
    device.events.push_back({Kind::kFree, 0, block});
  }
  device.events.push_back({Kind::kAllocate, 0, 30 * kUnitBytes});
  const std::optional<int64_t> least = LeastMemory(device, {}, 1.0, 0);
  ASSERT_TRUE(least.has_value());
  const auto runs = [&device](int64_t bytes) {
    const EventReplay replay =
        ReplayEvents(device, {.card = {.total = Bytes{bytes}, .left = Bytes{bytes}}});
    return !replay.out_of_memory_event.has_value();
  };
  EXPECT_EQ(*least, 70 * kUnitBytes);
  EXPECT_TRUE(runs(*least));
  EXPECT_FALSE(runs(*least - 2 * kUnitBytes));
}

TEST(LeastMemory, IsAboveATotalThatDoesNotFitWhereASmallerOneDoes) {
  // With little memory the cache is freed early, so that later blocks are placed elsewhere.
  RecordedDevice device{.private_pools = {false}, .num_allocations = 10};
  const auto allocate = [&device](int64_t size) {
    device.events.push_back({Kind::kAllocate, 0, size * kUnitBytes});
  };
  const auto release = [&device](int64_t block) {
    device.events.push_back({Kind::kFree, 0, block});
  };
  for (const int64_t size : {14, 34, 2, 38}) allocate(size);
  for (const int64_t block : {3, 2, 1}) release(block);
  for (const int64_t size : {18, 42, 2}) allocate(size);
  release(5);
  for (const int64_t size : {14, 22, 46}) allocate(size);
  const auto runs = [&device](int64_t mebibytes) {
    const Bytes usable{mebibytes * kUnitBytes};
    const EventReplay replay = ReplayEvents(device, {.card = {.total = usable, .left = usable}});
    return !replay.out_of_memory_event.has_value();
  };
  ASSERT_TRUE(runs(122));
  ASSERT_FALSE(runs(150));
  EXPECT_EQ(LeastMemory(device, {}, 1.0, 0), 152 * kUnitBytes);
}

TEST(LeastMemory, LeavesRoomForTheRestWhereTheProgramAllowsItselfAFraction) {
  // Half of the total, of which others hold 40 MiB: 160 = 2 x 80.
  EXPECT_EQ(LeastMemory(TwoSegments(), {}, /*fraction=*/0.5, /*beyond=*/40 * kUnitBytes),
            120 * kUnitBytes);
  EXPECT_EQ(LeastMemory(TwoSegments(), {}, /*fraction=*/0.0, /*beyond=*/0), std::nullopt);
}

TEST(LeastMemory, IsNotKnownOfAProgramThatRanOut) {
  RecordedDevice device = TwoSegments();
  device.events.push_back({Kind::kOutOfMemory, 0, 100 * kUnitBytes});
  EXPECT_EQ(LeastMemory(device, {}, 1.0, 0), std::nullopt);
  device.events.back().value = kLargestRequest;
  EXPECT_EQ(LeastMemory(device, {}, 1.0, 0), std::nullopt);
}

}  // namespace
}  // namespace hpo::memory
