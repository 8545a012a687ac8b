#include "memory/allocator/allocation_timeline.h"

#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

using Level = AllocationTimeline::Level;

TEST(TensorBytes, MultipliesUpToTheLargestTensor) {
  EXPECT_EQ(TensorBytes({4, 3, 5}), 60);
  EXPECT_EQ(TensorBytes({4, 0, int64_t{1} << 40}), 0);
  EXPECT_EQ(TensorBytes({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
  EXPECT_EQ(TensorBytes({4, int64_t{1} << 42}), kLargestTensorBytes);
  EXPECT_EQ(TensorBytes({4, (int64_t{1} << 42) + 1}), kLargestTensorBytes);
  EXPECT_EQ(TensorBytes({INT64_MAX, INT64_MAX, INT64_MAX}), kLargestTensorBytes);
}

TEST(AllocationTimeline, RemembersTheHighestPoint) {
  AllocationTimeline time;
  time.Allocate(10);
  time.Touch(50);
  time.Free(4);
  time.Allocate(20);
  EXPECT_EQ(time.now(), (Level{.other = 26, .gradients = 0}));
  EXPECT_EQ(time.peak(), (Level{.other = 60, .gradients = 0}));
}

// A part repeated n times is the same as that part appended n times, whether it grows or shrinks.
TEST(AllocationTimeline, RepeatingEqualsAppendingOneByOne) {
  const std::vector<std::tuple<int64_t, int64_t, int64_t>> cases = {
      {10, 5, 0}, {10, 5, 10}, {0, 7, 3}, {4, 0, 30}};
  for (const auto& [kept, touched, freed] : cases) {
    SCOPED_TRACE(::testing::Message() << kept << " " << touched << " " << freed);
    AllocationTimeline part;
    part.Free(freed);
    part.Change({.gradients = 2});
    part.Allocate(kept);
    part.Touch(touched);
    for (const int64_t times : {0, 1, 2, 7}) {
      AllocationTimeline once;
      once.Allocate(100);
      AllocationTimeline repeated = once;
      repeated.Append(part, times);
      for (int64_t i = 0; i < times; ++i) once.Append(part);
      EXPECT_EQ(repeated.now(), once.now());
      EXPECT_EQ(repeated.peak(), once.peak());
    }
  }
}

TEST(AllocationTimeline, APartThatOnlyShrinksDoesNotRaiseThePeak) {
  AllocationTimeline time;
  time.Allocate(100);
  AllocationTimeline part;
  part.Free(30);
  part.Allocate(10);
  time.Append(part, 3);
  EXPECT_EQ(time.now().other, 40);
  EXPECT_EQ(time.peak().other, 100);
}

}  // namespace
}  // namespace hpo::memory
