#include "memory/replay/least_memory.h"

#include "gtest/gtest.h"
#include "memory/replay/event_replay.h"

namespace hpo::memory {
namespace {

using Kind = RecordedEvent::Kind;

constexpr int64_t kMebibyte = MiB(1).count;

// 80 MiB live, 120 MiB reserved: with 80 MiB the cache is freed for the last block.
RecordedDevice Recorded() {
  return {.private_pools = {false},
          .events = {{Kind::kAllocate, 0, 40 * kMebibyte},
                     {Kind::kAllocate, 0, 30 * kMebibyte},
                     {Kind::kFree, 0, 0},
                     {Kind::kAllocate, 0, 50 * kMebibyte}},
          .num_allocations = 3};
}

TEST(LeastMemory, CountsWhatIsLiveWhereTheCacheIsFreed) {
  EXPECT_EQ(LeastMemory(Recorded(), {}, /*fraction=*/1.0, /*beyond=*/0), 80 * kMebibyte);
}

TEST(LeastMemory, IsMoreThanWhatIsLiveWhereBlocksAreInTheWay) {
  // Half of each of two segments stays in use, so that neither can be freed for the third.
  const RecordedDevice device{.private_pools = {false},
                              .events = {{Kind::kAllocate, 0, 10 * kMebibyte},
                                         {Kind::kAllocate, 0, 10 * kMebibyte},
                                         {Kind::kAllocate, 0, 10 * kMebibyte},
                                         {Kind::kAllocate, 0, 10 * kMebibyte},
                                         {Kind::kFree, 0, 0},
                                         {Kind::kFree, 0, 2},
                                         {Kind::kAllocate, 0, 20 * kMebibyte}},
                              .num_allocations = 5};
  const std::optional<int64_t> least = LeastMemory(device, {}, 1.0, 0);
  ASSERT_TRUE(least.has_value());
  const auto runs = [&device](int64_t bytes) {
    const EventReplay replay =
        ReplayEvents(device, {.card = {.total = Bytes{bytes}, .left = Bytes{bytes}}});
    return !replay.out_of_memory_event.has_value();
  };
  EXPECT_GT(*least, 40 * kMebibyte);
  EXPECT_TRUE(runs(*least));
  EXPECT_FALSE(runs(*least - 2 * kMebibyte));
}

TEST(LeastMemory, LeavesRoomForTheRestWhereTheProgramAllowsItselfAFraction) {
  // Half of the total, of which others hold 40 MiB: 160 = 2 x 80.
  EXPECT_EQ(LeastMemory(Recorded(), {}, /*fraction=*/0.5, /*beyond=*/40 * kMebibyte),
            120 * kMebibyte);
  EXPECT_EQ(LeastMemory(Recorded(), {}, /*fraction=*/0.0, /*beyond=*/0), std::nullopt);
}

TEST(LeastMemory, IsNotKnownOfAProgramThatRanOut) {
  RecordedDevice device = Recorded();
  device.events.push_back({Kind::kOutOfMemory, 0, 100 * kMebibyte});
  EXPECT_EQ(LeastMemory(device, {}, 1.0, 0), std::nullopt);
  device.events.back().value = kLargestRequest;
  EXPECT_EQ(LeastMemory(device, {}, 1.0, 0), std::nullopt);
}

}  // namespace
}  // namespace hpo::memory
