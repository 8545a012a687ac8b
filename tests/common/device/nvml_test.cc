#include "common/device/nvml.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;

TEST(NvmlProbe, ReadsEveryCard) {
  auto probe = NvmlProbe::Create(FAKE_NVML_GOOD);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpus = (*probe)->List();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 2u);
  const GpuState& second = (*gpus)[1];
  EXPECT_EQ(second.index, 1);
  EXPECT_EQ(second.uuid, "GPU-0001");
  EXPECT_EQ(second.name, "Fake Card B");
  EXPECT_EQ(second.driver, "580.65.06");
  EXPECT_EQ(second.total, GiB(24));
  EXPECT_EQ(second.free, GiB(20));
  EXPECT_TRUE(second.processes.empty());
}

TEST(NvmlProbe, TakesTheDriversReserveOutOfUsed) {
  auto probe = NvmlProbe::Create(FAKE_NVML_GOOD);
  ASSERT_TRUE(probe.ok()) << probe.status();
  EXPECT_EQ((*probe)->Read(0)->used, GiB(3));
}

TEST(NvmlProbe, ReadsAProcessListLongerThanItsFirstGuess) {
  auto probe = NvmlProbe::Create(FAKE_NVML_GOOD);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpu = (*probe)->Read(0);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  ASSERT_EQ(gpu->processes.size(), 40u);
  EXPECT_EQ(gpu->processes[0], (GpuProcess{.pid = 1000, .used = std::nullopt}));
  EXPECT_EQ(gpu->processes[39], (GpuProcess{.pid = 1039, .used = MiB(39), .name = "python1039"}));
}

TEST(NvmlProbe, FallsBackToTheFirstVersionsOfTheCalls) {
  auto probe = NvmlProbe::Create(FAKE_NVML_OLD);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpu = (*probe)->Read(1);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(gpu->used, GiB(4));
  EXPECT_EQ(gpu->processes, (std::vector<GpuProcess>{{.pid = 77, .used = GiB(1)}}));
}

TEST(NvmlProbe, SaysInOneLineThatThereIsNoDriver) {
  const auto probe = NvmlProbe::Create("libnvidia-ml-that-is-not-there.so.1");
  EXPECT_EQ(probe.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(probe.status().message()),
              HasSubstr("no NVIDIA driver: libnvidia-ml-that-is-not-there.so.1 not found ("));
  EXPECT_EQ(probe.status().message().find('\n'), absl::string_view::npos);
}

TEST(NvmlProbe, NamesTheMissingCall) {
  const auto probe = NvmlProbe::Create(FAKE_NVML_WITHOUT_UUID);
  EXPECT_EQ(probe.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(probe.status().message()), HasSubstr("nvmlDeviceGetUUID"));
}

TEST(NvmlProbe, PassesOnTheLibrarysReason) {
  const auto probe = NvmlProbe::Create(FAKE_NVML_NO_DRIVER);
  EXPECT_EQ(probe.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(probe.status().message(), "NVML: nvmlInit failed: Driver Not Loaded (code 9)");
}

TEST(NvmlProbe, ListsTheCardsThereAreWhenAskedForAnother) {
  auto probe = NvmlProbe::Create(FAKE_NVML_GOOD);
  ASSERT_TRUE(probe.ok()) << probe.status();
  for (const int64_t index : {int64_t{-1}, int64_t{2}, int64_t{7}, int64_t{1} << 40}) {
    SCOPED_TRACE(index);
    const auto gpu = (*probe)->Read(index);
    EXPECT_EQ(gpu.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(gpu.status().message()),
                HasSubstr("there are: 0: Fake Card A (GPU-0000, 24.00 GiB), 1: Fake Card B"));
  }
}

TEST(NvmlProbe, OneLostCardDoesNotHideTheOthers) {
  auto probe = NvmlProbe::Create(FAKE_NVML_LOST_CARD);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpus = (*probe)->List();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 1u);
  EXPECT_EQ((*gpus)[0].index, 0);
  const auto lost = (*probe)->Read(1);
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.status().message()), HasSubstr("GPU 1 failed: GPU is lost"));
}

TEST(NvmlProbe, CanBeOpenedAgainAfterItWasClosed) {
  for (int round = 0; round < 3; ++round) {
    auto probe = NvmlProbe::Create(FAKE_NVML_GOOD);
    ASSERT_TRUE(probe.ok()) << probe.status();
    EXPECT_TRUE((*probe)->Read(0).ok());
  }
}

}  // namespace
}  // namespace hpo
