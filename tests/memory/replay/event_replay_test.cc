#include "memory/replay/event_replay.h"

#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

using Kind = RecordedEvent::Kind;

constexpr int64_t kMebibyte = MiB(1).count;

AllocatorOptions GpuOf(int64_t mebibytes) {
  return {.card = {.total = MiB(mebibytes), .left = MiB(mebibytes)}};
}

// Two large blocks, of which one is freed, then one that fits in neither's place.
RecordedDevice Recorded() {
  return {.private_pools = {false},
          .events = {{Kind::kAllocate, 0, 40 * kMebibyte},
                     {Kind::kAllocate, 0, 30 * kMebibyte},
                     {Kind::kFree, 0, 0},
                     {Kind::kAllocate, 0, 50 * kMebibyte}},
          .num_allocations = 3};
}

TEST(EventReplay, CountsWhatTheGpuWouldHold) {
  const EventReplay replay = ReplayEvents(Recorded(), GpuOf(200));
  EXPECT_EQ(replay.stats.allocated_peak, MiB(80));
  EXPECT_EQ(replay.stats.reserved_peak, MiB(120));
  EXPECT_EQ(replay.stats.num_retries, 0);
  EXPECT_FALSE(replay.out_of_memory_event.has_value());
  EXPECT_FALSE(replay.unknown_from_event.has_value());
}

TEST(EventReplay, RetriesWhereMemoryIsShort) {
  const EventReplay replay = ReplayEvents(Recorded(), GpuOf(100));
  EXPECT_EQ(replay.stats.reserved_peak, MiB(80));
  EXPECT_EQ(replay.stats.num_retries, 1);
  EXPECT_FALSE(replay.out_of_memory_event.has_value());
}

TEST(EventReplay, EndsWhereMemoryRunsOut) {
  const EventReplay replay = ReplayEvents(Recorded(), GpuOf(79));
  EXPECT_EQ(replay.out_of_memory_event, 3u);
  EXPECT_EQ(replay.stats.allocated_peak, MiB(70));
}

TEST(EventReplay, TakesTheSettingsOfTheTarget) {
  AllocatorOptions options = GpuOf(200);
  options.expandable_segments = true;
  const EventReplay replay = ReplayEvents(Recorded(), options);
  EXPECT_EQ(replay.stats.reserved_peak, MiB(120));  // the last block grew by 40
  options = GpuOf(200);
  options.limit = MiB(70);
  EXPECT_EQ(ReplayEvents(Recorded(), options).out_of_memory_event, 3u);
}

// A program that makes its batch smaller after an out-of-memory error.
TEST(EventReplay, GoesOnAfterAnErrorThatWasRecorded) {
  const RecordedDevice device{
      .private_pools = {false},
      .events = {{Kind::kOutOfMemory, 0, 300 * kMebibyte}, {Kind::kAllocate, 0, 100 * kMebibyte}},
      .num_allocations = 1};
  const EventReplay smaller = ReplayEvents(device, GpuOf(150));
  EXPECT_EQ(smaller.out_of_memory_event, 0u);
  EXPECT_EQ(smaller.stats.reserved_peak, MiB(100));
  EXPECT_FALSE(smaller.unknown_from_event.has_value());

  const EventReplay larger = ReplayEvents(device, GpuOf(400));
  EXPECT_FALSE(larger.out_of_memory_event.has_value());
  EXPECT_EQ(larger.unknown_from_event, 0u);
}

TEST(EventReplay, EmptiesTheCacheWhereTheProgramDid) {
  RecordedDevice device = Recorded();
  device.events.insert(device.events.begin() + 3, {Kind::kEmptyCache, 0, 0});
  EXPECT_EQ(ReplayEvents(device, GpuOf(200)).stats.reserved_peak, MiB(80));
}

TEST(EventReplay, KeepsPrivatePoolsUntilTheyAreReleased) {
  RecordedDevice device{.private_pools = {false, true},
                        .events = {{Kind::kAllocate, 1, 60 * kMebibyte},
                                   {Kind::kFree, 0, 0},
                                   {Kind::kEmptyCache, 0, 0},
                                   {Kind::kAllocate, 0, 60 * kMebibyte}},
                        .num_allocations = 2};
  EXPECT_EQ(ReplayEvents(device, GpuOf(200)).stats.reserved_peak, MiB(120));
  // The other pool's cached segment is not freed for it.
  EXPECT_EQ(ReplayEvents(device, GpuOf(100)).out_of_memory_event, 3u);
  device.events[2] = {Kind::kEmptyPrivate, 1, 0};
  EXPECT_EQ(ReplayEvents(device, GpuOf(100)).stats.reserved_peak, MiB(60));
}

}  // namespace
}  // namespace hpo::memory
