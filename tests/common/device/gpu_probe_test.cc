#include "common/device/gpu_probe.h"

#include <vector>

#include "gtest/gtest.h"

namespace hpo {
namespace {

GpuState Card() {
  return {.index = 3,
          .uuid = "GPU-3",
          .name = "Card",
          .driver = "580",
          .total = GiB(24),
          .free = GiB(18),
          .used = GiB(6),
          .processes = {{.pid = 10, .used = GiB(4)},
                        {.pid = 11, .used = GiB(1)},
                        {.pid = 12, .used = std::nullopt}}};
}

TEST(UsedByOthers, LeavesOutOwnProcesses) {
  const std::pair<std::vector<int64_t>, Bytes> cases[] = {
      {{}, GiB(6)},       {{10}, GiB(2)},
      {{10, 11}, GiB(1)}, {{12}, GiB(6)},  // ours, but the driver does not tell its bytes
      {{99}, GiB(6)},                      // a container's pid, which the driver does not know
  };
  for (const auto& [own, expected] : cases) {
    SCOPED_TRACE(::testing::PrintToString(own));
    EXPECT_EQ(UsedByOthers(Card(), own), expected);
  }
}

TEST(UsedByOthers, IsNeverNegative) {
  GpuState gpu = Card();
  gpu.used = GiB(3);  // read a moment after the list of processes
  EXPECT_EQ(UsedByOthers(gpu, std::vector<int64_t>{10}), Bytes{});
}

TEST(DescribeGpus, NamesEachCardOnce) {
  EXPECT_EQ(DescribeGpus({}), "none");
  const std::vector<GpuState> two = {Card(), Card()};
  EXPECT_EQ(DescribeGpus(two), "3: Card (GPU-3, 24.00 GiB), 3: Card (GPU-3, 24.00 GiB)");
}

}  // namespace
}  // namespace hpo
