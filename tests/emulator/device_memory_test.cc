// Copies, launches, pools and pinned memory, on the process's emulated GPU.
#include <stdlib.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "emulator/device_values.h"
#include "emulator/host_memory.h"
#include "emulator/machine.h"
#include "emulator/memory_pool.h"
#include "emulator/streams/copies.h"
#include "emulator/streams/launches.h"
#include "emulator/streams/streams.h"
#include "gtest/gtest.h"

namespace hpo::emulator {
namespace {

constexpr size_t kMebi = size_t{1} << 20;
constexpr const char* kText = "0123456789abcde";  // 16 bytes with its end

class DeviceMemoryTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("HPO_EMULATED_CARD", "t4", /*overwrite=*/0); }

  void SetUp() override {
    device_ = Machine::Get().Allocate(0, 4096);
    ASSERT_NE(device_, nullptr);
  }
  void TearDown() override { Machine::Get().Free(device_); }

  std::string Read(size_t offset, size_t bytes) {
    std::string text(bytes, '?');
    EXPECT_EQ(EnqueueCopy(text.data(), device_ + offset, bytes, nullptr), 0);
    return text;
  }
  static int LaunchOn(void* stream) {
    return EnqueueLaunch({.kernel = "k", .grid = {}, .block = {}, .stream = stream});
  }

  char* device_ = nullptr;
};

TEST_F(DeviceMemoryTest, WhatIsCopiedThereAndBackIsTrue) {
  EXPECT_EQ(Read(0, 4), std::string(4, '\0')) << "not known";
  EnqueueCopy(device_, kText, 16, nullptr);
  EXPECT_EQ(Read(0, 16), std::string(kText, 16));
  EXPECT_EQ(Read(3, 5), "34567");
  EnqueueCopy(device_ + 100, device_ + 10, 4, nullptr);
  EXPECT_EQ(Read(100, 4), "abcd");
  EnqueueSet(device_ + 2, 'x', 3, nullptr);
  EXPECT_EQ(Read(0, 8), "01xxx567");
  char host[4] = "abc";
  EnqueueCopy(host, kText, 4, nullptr);
  EXPECT_EQ(std::string(host, 4), "0123");
  EnqueueSet(host, 'z', 2, nullptr);
  EXPECT_EQ(std::string(host, 4), "zz23");
}

TEST_F(DeviceMemoryTest, RowsAreCopiedByTheirPitch) {
  const Rectangle there{.width = 2, .height = 3, .to_pitch = 8, .from_pitch = 4};
  EnqueueCopy2D(device_, kText, there, nullptr);
  EXPECT_EQ(Read(0, 2) + Read(8, 2) + Read(16, 2), "014589");
  EXPECT_FALSE(KnownBytes(device_ + 2, 1).has_value());
}

TEST_F(DeviceMemoryTest, AKernelMakesAllValuesUnknown) {
  EnqueueCopy(device_, kText, 16, nullptr);
  EXPECT_EQ(LaunchOn(nullptr), 0);
  EXPECT_EQ(Read(0, 4), std::string(4, '\0'));
}

TEST_F(DeviceMemoryTest, FreedMemoryIsUnknown) {
  EnqueueCopy(device_, kText, 16, nullptr);
  char* const before = device_;
  Machine::Get().Free(device_);
  EXPECT_FALSE(KnownBytes(before, 1).has_value());
  SetUp();
}

TEST_F(DeviceMemoryTest, ACapturedCopyIsDoneByEachLaunchOfItsGraph) {
  Streams& streams = Streams::Get();
  void* const stream = streams.CreateStream(false, 0);
  char from[4] = {'a', 'b', 'c', 'd'};
  char to[4] = {};
  ASSERT_EQ(streams.BeginCapture(stream, CaptureMode::kGlobal), kStreamOk);
  EnqueueCopy(device_, from, 4, stream);
  EnqueueCopy(to, device_, 4, stream);
  EXPECT_EQ(LaunchOn(stream), 0);
  std::unique_ptr<Graph> graph;
  ASSERT_EQ(streams.EndCapture(stream, graph), kStreamOk);
  EXPECT_EQ(to[0], '\0');
  const ExecutableGraph executable(*graph);
  for (const char letter : {'x', 'y'}) {
    from[0] = letter;
    executable.Run();
    EXPECT_EQ(to[0], letter);
    EXPECT_FALSE(KnownBytes(device_, 1).has_value()) << "the graph's kernel came last";
  }
  streams.DestroyStream(stream);
}

TEST_F(DeviceMemoryTest, TheShapeOfALaunchIsChecked) {
  const Launch good{.kernel = "k", .grid = {65536, 1, 1}, .block = {32, 32, 1}};
  EXPECT_EQ(EnqueueLaunch(good), 0);
  Launch bad = good;
  bad.block = {32, 33, 1};
  EXPECT_EQ(EnqueueLaunch(bad), kLaunchInvalidConfiguration);
  bad = good;
  bad.grid = {1, 65536, 1};
  EXPECT_EQ(EnqueueLaunch(bad), kLaunchInvalidConfiguration);
  bad.grid = {0, 1, 1};
  EXPECT_EQ(EnqueueLaunch(bad), kLaunchInvalidConfiguration);
  bad = good;
  bad.shared_bytes = SharedBytesPerBlock();
  EXPECT_EQ(EnqueueLaunch(bad), 0);
  ++bad.shared_bytes;
  EXPECT_EQ(EnqueueLaunch(bad), kLaunchTooMuchShared);
  EXPECT_EQ(BlocksPerMultiprocessor(256, 0), 4);
  EXPECT_EQ(BlocksPerMultiprocessor(32, 0), 32);
  EXPECT_LT(BlocksPerMultiprocessor(32, 8192), 32);
}

TEST_F(DeviceMemoryTest, APoolReservesPagesAndReleasesThemAboveItsThreshold) {
  EXPECT_EQ(MemoryPool::OfDevice(-1), nullptr);
  EXPECT_EQ(MemoryPool::OfDevice(Machine::Get().num_devices()), nullptr);
  MemoryPool& pool = *MemoryPool::OfDevice(0);
  const size_t free = Machine::Get().FreeBytes(0);
  pool.set_release_threshold(UINT64_MAX);
  void* const first = pool.Allocate(1);
  void* const second = pool.Allocate(3 * kMebi);
  EXPECT_EQ(MemoryPool::OfAddress(first), &pool);
  EXPECT_EQ(MemoryPool::OfAddress(device_), nullptr);
  EXPECT_EQ(pool.usage().used, 256 + 3 * kMebi);
  EXPECT_EQ(pool.usage().reserved, 4 * kMebi);
  EXPECT_EQ(Machine::Get().FreeBytes(0), free - 4 * kMebi);
  EXPECT_TRUE(pool.Free(second));
  EXPECT_FALSE(pool.Free(second));
  MemoryPool::ReleaseUnused();
  EXPECT_EQ(pool.usage().reserved, 4 * kMebi);
  pool.TrimTo(3 * kMebi);
  EXPECT_EQ(pool.usage().reserved, 4 * kMebi) << "in pages of 2 MiB";
  pool.TrimTo(0);
  EXPECT_EQ(pool.usage().reserved, 2 * kMebi);
  EXPECT_EQ(pool.usage().reserved_high, 4 * kMebi);
  pool.ResetReservedHigh();
  pool.ResetUsedHigh();
  EXPECT_EQ(pool.usage().reserved_high, 2 * kMebi);
  EXPECT_EQ(pool.usage().used_high, 256u);
  EXPECT_EQ(pool.Allocate(free), nullptr);
  EXPECT_TRUE(pool.Free(first));
  pool.set_release_threshold(0);
  MemoryPool::ReleaseUnused();
  EXPECT_EQ(Machine::Get().FreeBytes(0), free);
}

TEST(HostMemory, IsPinnedByAllocationOrRegistration) {
  HostMemory& host = HostMemory::Get();
  auto* const own = static_cast<char*>(host.Allocate(10));
  EXPECT_TRUE(host.IsPinned(own + 9));
  std::vector<char> programs(100);
  EXPECT_FALSE(host.IsPinned(programs.data()));
  host.Register(programs.data(), programs.size());
  EXPECT_TRUE(host.IsPinned(programs.data() + 99));
  EXPECT_FALSE(host.IsPinned(programs.data() + 100));
  host.Unregister(programs.data());
  EXPECT_FALSE(host.IsPinned(programs.data()));
  host.Free(own);
}

}  // namespace
}  // namespace hpo::emulator
