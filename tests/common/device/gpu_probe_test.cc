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

TEST(DescribeGpus, NamesEachCardOnce) {
  EXPECT_EQ(DescribeGpus({}), "none");
  const std::vector<GpuState> two = {Card(), Card()};
  EXPECT_EQ(DescribeGpus(two), "3: Card (GPU-3, 24.00 GiB), 3: Card (GPU-3, 24.00 GiB)");
}

}  // namespace
}  // namespace hpo
