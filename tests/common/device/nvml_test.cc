#include "common/device/nvml.h"

#include <stdlib.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFirstUuid = "GPU-68706f65-0000-4614-0000-000000000000";
constexpr const char* kSecondUuid = "GPU-68706f66-0000-4614-0000-000000000001";

// Two emulated A100: how the library behaves is read again when it is opened.
class NvmlProbeTest : public ::testing::Test {
 protected:
  NvmlProbeTest() {
    Set("CARD", "a100");
    Set("CARDS", "2");
  }
  ~NvmlProbeTest() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }

  void Set(const std::string& name, const std::string& value) {
    set_.push_back("HPO_EMULATED_" + name);
    setenv(set_.back().c_str(), value.c_str(), /*overwrite=*/1);
  }

 private:
  std::vector<std::string> set_;
};

TEST_F(NvmlProbeTest, ReadsEveryCard) {
  auto probe = NvmlProbe::Create(FAKE_NVML);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpus = (*probe)->List();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 2u);
  const GpuState& second = (*gpus)[1];
  EXPECT_EQ(second.index, 1);
  EXPECT_EQ(second.uuid, kSecondUuid);
  EXPECT_EQ(second.name, "NVIDIA A100-PCIE-40GB (emulated)");
  EXPECT_EQ(second.driver, "580.65.06");
  EXPECT_EQ(second.total, MiB(40960));
  EXPECT_EQ(second.free, Bytes{42298834944});
  EXPECT_TRUE(second.processes.empty());
}

TEST_F(NvmlProbeTest, TakesTheDriversReserveOutOfUsed) {
  Set("OTHERS", "3GiB");
  auto probe = NvmlProbe::Create(FAKE_NVML);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpu = (*probe)->Read(kFirstUuid);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(gpu->used, GiB(3));
  EXPECT_EQ(gpu->free, Bytes{42298834944} - GiB(3));
}

TEST_F(NvmlProbeTest, ReadsAProcessListLongerThanItsFirstGuess) {
  Set("OTHERS", "40x39MiB");
  auto probe = NvmlProbe::Create(FAKE_NVML);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpu = (*probe)->Read(kFirstUuid);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  ASSERT_EQ(gpu->processes.size(), 40u);
  EXPECT_EQ(gpu->processes[0], (GpuProcess{.pid = 5000000, .used = std::nullopt}));
  EXPECT_EQ(gpu->processes[39],
            (GpuProcess{.pid = 5000039, .used = MiB(39), .name = "python5000039"}));
}

TEST_F(NvmlProbeTest, FallsBackToTheFirstVersionsOfTheCalls) {
  Set("OTHERS", "1GiB");
  auto probe = NvmlProbe::Create(FAKE_NVML_OLD);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpu = (*probe)->Read(kSecondUuid);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(gpu->used, MiB(40960) - Bytes{42298834944} + GiB(1));  // with the driver's reserve
  EXPECT_EQ(gpu->processes, (std::vector<GpuProcess>{{.pid = 5000000, .used = GiB(1)}}));
}

TEST_F(NvmlProbeTest, SaysInOneLineThatThereIsNoDriver) {
  const auto probe = NvmlProbe::Create("libnvidia-ml-that-is-not-there.so.1");
  EXPECT_EQ(probe.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(probe.status().message()),
              HasSubstr("no NVIDIA driver: libnvidia-ml-that-is-not-there.so.1 not found ("));
  EXPECT_EQ(probe.status().message().find('\n'), absl::string_view::npos);
}

TEST_F(NvmlProbeTest, NamesTheMissingCall) {
  const auto probe = NvmlProbe::Create(FAKE_NVML_WITHOUT_UUID);
  EXPECT_EQ(probe.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(probe.status().message()), HasSubstr("nvmlDeviceGetUUID"));
}

TEST_F(NvmlProbeTest, PassesOnTheLibrarysReason) {
  Set("FAULTS", "nvmlInit_v2:1:9");
  const auto probe = NvmlProbe::Create(FAKE_NVML);
  EXPECT_EQ(probe.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(probe.status().message(), "NVML: nvmlInit failed: emulated: no driver (code 9)");
}

TEST_F(NvmlProbeTest, ListsTheCardsThereAreWhenAskedForAnother) {
  auto probe = NvmlProbe::Create(FAKE_NVML);
  ASSERT_TRUE(probe.ok()) << probe.status();
  for (const char* uuid :
       {"", "GPU-", "GPU-68706f66", "MIG-68706f65-0000-4614-0000-000000000000"}) {
    SCOPED_TRACE(uuid);
    const auto gpu = (*probe)->Read(uuid);
    EXPECT_EQ(gpu.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(gpu.status().message()),
                HasSubstr(absl::StrCat("there are: 0: NVIDIA A100-PCIE-40GB (emulated) (",
                                       kFirstUuid, ", 40.00 GiB), 1: NVIDIA A100-PCIE-40GB")));
  }
}

TEST_F(NvmlProbeTest, OneLostCardDoesNotHideTheOthers) {
  Set("FAULTS", "nvmlDeviceGetHandleByIndex_v2:2:15:always");
  auto probe = NvmlProbe::Create(FAKE_NVML);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpus = (*probe)->List();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 1u);
  EXPECT_EQ((*gpus)[0].index, 0);
  const auto lost = (*probe)->Read(kSecondUuid);
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(lost.status().message()),
              HasSubstr("failed: emulated: the card is lost"));
}

// Slurm's control groups hide GPUs so; CUDA counts those that are left.
TEST_F(NvmlProbeTest, AGpuThatMayNotBeOpenedHasNoNumber) {
  Set("FAULTS", "nvmlDeviceGetHandleByIndex_v2:1:4");
  auto probe = NvmlProbe::Create(FAKE_NVML);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpus = (*probe)->List();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 1u);
  EXPECT_EQ((*gpus)[0].index, 0);
  EXPECT_EQ((*gpus)[0].uuid, kSecondUuid);
}

TEST_F(NvmlProbeTest, ListsMigDevicesInPlaceOfTheirGpu) {
  Set("MIG", "3");
  auto probe = NvmlProbe::Create(FAKE_NVML);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpus = (*probe)->List();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_EQ(gpus->size(), 6u);
  const GpuState& fifth = (*gpus)[4];
  EXPECT_EQ(fifth.index, 1);
  EXPECT_EQ(fifth.uuid.substr(0, 12), "MIG-68706f69");
  EXPECT_EQ(fifth.parent_uuid, (*gpus)[3].parent_uuid);
  EXPECT_NE(fifth.parent_uuid, (*gpus)[0].parent_uuid);
  EXPECT_EQ(fifth.parent_uuid.substr(0, 4), "GPU-");
  EXPECT_EQ(fifth.name, "NVIDIA A100-PCIE-40GB MIG 1 of 3 (emulated)");
  EXPECT_LT(fifth.total, GiB(14));
  EXPECT_GT(fifth.free, GiB(13));
  EXPECT_EQ(fifth.capability, "8.0");
  EXPECT_EQ(fifth.multiprocessors, 36);
  const auto alone = (*probe)->Read(fifth.uuid);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(*alone, fifth);
}

// Through NVML as through CUDA: bench and worker compare the two.
TEST_F(NvmlProbeTest, ShowsEachCardOfTheTable) {
  Set("CARD", "t4+rtx3060+l4+a100+h100+h200");
  Set("CARDS", "");
  auto probe = NvmlProbe::Create(FAKE_NVML);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpus = (*probe)->List();
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  const std::pair<Bytes, Bytes> expected[] = {
      {MiB(15360), Bytes{15828320256}}, {MiB(12288), Bytes{12629508096}},
      {MiB(23034), Bytes{23580639232}}, {MiB(40960), Bytes{42298834944}},
      {MiB(81559), Bytes{85028896768}}, {MiB(143771), Bytes{150109880320}},
  };
  ASSERT_EQ(gpus->size(), std::size(expected));
  for (size_t i = 0; i < gpus->size(); ++i) {
    SCOPED_TRACE((*gpus)[i].name);
    EXPECT_THAT((*gpus)[i].name, HasSubstr("(emulated)"));
    EXPECT_EQ((*gpus)[i].total, expected[i].first);
    EXPECT_EQ((*gpus)[i].free, expected[i].second);
  }
}

// On these the required memory of a program depends, so that they are what CUDA says.
TEST_F(NvmlProbeTest, TellsTheShapeOfEachGpu) {
  struct Shape {
    std::string capability;
    int64_t multiprocessors;
    int64_t threads;
  };
  Set("CARDS", "");
  const std::vector<std::pair<std::string, Shape>> expected = {
      {"t4", {"7.5", 40, 1024}},        {"a100", {"8.0", 108, 2048}},
      {"rtx3060", {"8.6", 28, 1536}},   {"l4", {"8.9", 58, 1536}},
      {"h100", {"9.0", 132, 2048}},     {"b200", {"10.0", 148, 2048}},
      {"rtx5090", {"12.0", 170, 1536}},
  };
  for (const auto& [name, shape] : expected) {
    SCOPED_TRACE(name);
    Set("CARD", name);
    auto probe = NvmlProbe::Create(FAKE_NVML);
    ASSERT_TRUE(probe.ok()) << probe.status();
    const auto gpus = (*probe)->List();
    ASSERT_TRUE(gpus.ok()) << gpus.status();
    const GpuState* const gpu = &gpus->front();
    EXPECT_EQ(gpu->capability, shape.capability);
    EXPECT_EQ(gpu->multiprocessors, shape.multiprocessors);
    EXPECT_EQ(gpu->threads_per_multiprocessor, shape.threads);
  }
}

TEST_F(NvmlProbeTest, DoesWithoutTheShapeWhereTheDriverIsOld) {
  auto probe = NvmlProbe::Create(FAKE_NVML_OLD);
  ASSERT_TRUE(probe.ok()) << probe.status();
  const auto gpu = (*probe)->Read(kFirstUuid);
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(gpu->capability, "");
  EXPECT_EQ(gpu->multiprocessors, 0);
}

TEST_F(NvmlProbeTest, CanBeOpenedAgainAfterItWasClosed) {
  for (int round = 0; round < 3; ++round) {
    auto probe = NvmlProbe::Create(FAKE_NVML);
    ASSERT_TRUE(probe.ok()) << probe.status();
    EXPECT_TRUE((*probe)->Read(kFirstUuid).ok());
  }
}

}  // namespace
}  // namespace hpo
