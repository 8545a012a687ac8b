#include "memory/replay/other_gpu.h"

#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

using Kind = RecordedEvent::Kind;

constexpr GpuShape kA100{80, 108, 2048};
constexpr GpuShape kL4{89, 58, 1536};
constexpr GpuShape kT4{75, 40, 1024};
constexpr GpuShape kH100{90, 132, 2048};

// The size on `to` of what is allocated on `from` for `blocks` blocks that share each result.
int64_t SumOn(const GpuShape& from, const GpuShape& to, int64_t bytes, const SharedSum& sum) {
  const RecordedDevice device{.gpu = from,
                              .private_pools = {false},
                              .events = {{Kind::kAllocate, 0, bytes}},
                              .shared_sums = {sum},
                              .num_allocations = 1};
  return OnGpu(device, to).device.events.front().value;
}

// As torch allocates on emulated GPUs: the sum of all elements, and of the rows of a matrix.
TEST(OtherGpu, SharesAReductionAmongTheBlocksThatItRunsAtOnce) {
  const SharedSum all{.blocks = 432, .groups = 1, .threads = 512};
  EXPECT_EQ(SumOn(kA100, kA100, 1728, all), 1728);
  EXPECT_EQ(SumOn(kA100, kL4, 1728, all), 696);
  EXPECT_EQ(SumOn(kA100, kT4, 1728, all), 320);
  EXPECT_EQ(SumOn(kA100, kH100, 1728, all), 2112);
  // 64 blocks were enough for the elements that there are.
  const SharedSum rows{.blocks = 64, .groups = 24, .threads = 128};
  EXPECT_EQ(SumOn(kA100, kH100, 100663296, rows), 100663296);
  EXPECT_EQ(SumOn(kA100, kL4, 100663296, rows), 45613056);
  EXPECT_EQ(SumOn(kA100, kT4, 100663296, rows), 22020096);
  // No thread sums more than 256 elements, so 40 blocks share a result wherever that many run.
  const SharedSum many{.blocks = 40, .groups = 24, .threads = 512};
  EXPECT_EQ(SumOn(kL4, kT4, 4000, many), 4000);
}

TEST(OtherGpu, HasTheWorkspaceThatTorchGivesCublasThere) {
  const RecordedDevice a100{.gpu = kA100,
                            .private_pools = {false},
                            .events = {{Kind::kAllocate, 0, 8519680},
                                       {Kind::kAllocate, 0, 8519680},   // a tensor
                                       {Kind::kAllocate, 0, 4096000}},  // set by the user
                            .workspaces = {0, 2},
                            .num_allocations = 3};
  const RecordedDevice h100 = OnGpu(a100, kH100).device;
  EXPECT_EQ(h100.events[0].value, 33554432);
  EXPECT_EQ(h100.events[1].value, 8519680);
  EXPECT_EQ(h100.events[2].value, 4096000);
  EXPECT_EQ(OnGpu(h100, kA100).device, a100);
}

TEST(OtherGpu, IsTheRecordedOneWhereItsShapeIsNotGiven) {
  RecordedDevice device{.gpu = kA100,
                        .private_pools = {false},
                        .events = {{Kind::kAllocate, 0, 8519680}},
                        .workspaces = {0},
                        .num_allocations = 1};
  EXPECT_EQ(OnGpu(device, {}).device, device);
  device.gpu = {};
  EXPECT_EQ(OnGpu(device, kH100).device, device);
}

TEST(OtherGpu, CountsTheSizesThatAreNotKnown) {
  RecordedDevice device{.gpu = kA100,
                        .private_pools = {false},
                        .events = {{Kind::kAllocate, 0, 1728}},
                        .shared_sums = {{.blocks = 432, .groups = 1, .threads = 512}},
                        .num_allocations = 1};
  EXPECT_EQ(OnGpu(device, kA100).num_unknown_sizes, 0);
  EXPECT_EQ(OnGpu(device, kL4).num_unknown_sizes, 0);
  EXPECT_EQ(OnGpu(device, kH100).num_unknown_sizes, 1);  // it may have been enough
  device.shared_sums.front().blocks = 431;
  EXPECT_EQ(OnGpu(device, kH100).num_unknown_sizes, 0);
  device.num_sums_missing = 2;
  EXPECT_EQ(OnGpu(device, kA100).num_unknown_sizes, 0);
  EXPECT_EQ(OnGpu(device, kL4).num_unknown_sizes, 2);
}

TEST(OtherGpu, NeverNeedsMoreThanCanBeCounted) {
  const SharedSum sum{.blocks = 1, .groups = 1, .threads = 1};
  EXPECT_EQ(SumOn({80, 1, 1}, {80, kLargestCount, kLargestCount}, kLargestRequest, sum),
            kLargestRequest);
}

}  // namespace
}  // namespace hpo::memory
