#include "common/device/host_memory.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A folder that stands for "/".
class HostMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(::testing::TempDir()) / absl::StrCat("host_memory_", getpid(), test->name());
    Write("proc/meminfo",
          "MemTotal:       1048576 kB\nMemFree:          10240 kB\nMemAvailable:    524288 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  // A version 2 group /jobs/one: usage 300 MiB of which 50 MiB is cache, limit 400 MiB.
  void WriteUnifiedGroup() {
    Write("proc/self/cgroup", "0::/jobs/one\n");
    WriteUnifiedLevel("jobs/one", MiB(400), MiB(300));
    Write("sys/fs/cgroup/jobs/one/memory.events", "low 0\nmax 9\noom 2\noom_kill 1\n");
  }
  void WriteUnifiedLevel(const std::string& group, Bytes limit, Bytes used) {
    const std::string folder = absl::StrCat("sys/fs/cgroup/", group, "/");
    Write(folder + "memory.max", limit.count == 0 ? "max\n" : absl::StrCat(limit.count, "\n"));
    Write(folder + "memory.current", absl::StrCat(used.count, "\n"));
    Write(folder + "memory.stat", "anon 1\nfile 60000000\ninactive_file 52428800\n");
  }

  HostMemoryReader Reader() const { return HostMemoryReader(root_); }

  fs::path root_;
};

TEST_F(HostMemoryTest, ReadsTheMachine) {
  const auto host = Reader().ReadHost();
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->total, GiB(1));
  EXPECT_EQ(host->available, MiB(512));
}

TEST_F(HostMemoryTest, NamesWhatMeminfoLacks) {
  Write("proc/meminfo", "MemTotal:       1048576 kB\n");
  const auto host = Reader().ReadHost();
  EXPECT_EQ(host.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(host.status().message()), HasSubstr("expected a line MemAvailable:"));
  fs::remove(root_ / "proc/meminfo");
  EXPECT_THAT(std::string(Reader().ReadHost().status().message()), HasSubstr("proc/meminfo"));
}

TEST_F(HostMemoryTest, ReadsAVersion2Group) {
  WriteUnifiedGroup();
  const auto group = Reader().ReadCgroup();
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->limit, MiB(400));
  EXPECT_EQ(group->used, MiB(250));
  EXPECT_EQ(group->oom_kills, 1);
}

TEST_F(HostMemoryTest, TheTightestAncestorCounts) {
  WriteUnifiedGroup();
  WriteUnifiedLevel("jobs", MiB(350), MiB(340));
  const auto group = Reader().ReadCgroup();
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->limit, MiB(350));
  EXPECT_EQ(group->used, MiB(290));
  EXPECT_EQ(group->oom_kills, 1) << "the kills are the process's own group's";
}

TEST_F(HostMemoryTest, NoLimitIsNotANumber) {
  WriteUnifiedGroup();
  WriteUnifiedLevel("jobs/one", Bytes{}, MiB(300));
  const auto group = Reader().ReadCgroup();
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->limit, std::nullopt);
  EXPECT_EQ(group->used, MiB(250));
}

TEST_F(HostMemoryTest, ReadsAVersion1GroupBesideAnEmptyVersion2) {
  Write("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/jobs\n0::/\n");
  const std::string folder = "sys/fs/cgroup/memory/jobs/";
  Write(folder + "memory.limit_in_bytes", "1073741824\n");
  Write(folder + "memory.usage_in_bytes", "104857600\n");
  Write(folder + "memory.stat", "cache 1\ntotal_inactive_file 20971520\n");
  Write(folder + "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const auto group = Reader().ReadCgroup();
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->limit, GiB(1));
  EXPECT_EQ(group->used, MiB(80));
  EXPECT_EQ(group->oom_kills, 7);
}

TEST_F(HostMemoryTest, AContainerReadsTheGroupThatIsMounted) {
  Write("proc/self/cgroup", "0::/kubepods/pod7/container9\n");
  Write("proc/self/mountinfo",
        "27 23 0:24 / /sys rw - sysfs sysfs rw\n"
        "30 27 0:26 /kubepods/pod7/container9 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  WriteUnifiedLevel(".", MiB(200), MiB(150));
  const auto group = Reader().ReadCgroup();
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(group->limit, MiB(200));
  EXPECT_EQ(group->used, MiB(100));
}

TEST_F(HostMemoryTest, WhatIsMountedAboveTheGroupSaysNothingOfIt) {
  Write("proc/self/cgroup", "4:memory:/jobs/one\n0::/\n");
  Write("proc/self/mountinfo", "30 27 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", absl::StrCat(GiB(90).count, "\n"));
  Write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\noom_kill 12\n");
  EXPECT_EQ(Reader().ReadCgroup().status().code(), absl::StatusCode::kNotFound)
      << "the machine's kills are not ours";
}

TEST_F(HostMemoryTest, ReadsAnotherProcess) {
  WriteUnifiedGroup();
  Write("proc/42/cgroup", "0::/jobs\n");
  WriteUnifiedLevel("jobs", MiB(600), MiB(500));
  EXPECT_EQ(Reader().ReadCgroup(42)->limit, MiB(600));
  Write("proc/42/status", "Name:\ttrainer\nVmPeak:\t  900 kB\nVmRSS:\t  512 kB\n");
  EXPECT_EQ(*Reader().ReadResident(42), KiB(512));
}

TEST_F(HostMemoryTest, AProcessThatEndedIsNotFound) {
  EXPECT_EQ(Reader().ReadCgroup(43).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Reader().ReadResident(43).status().code(), absl::StatusCode::kNotFound);
  Write("proc/44/status", "Name:\ttrainer\nState:\tZ (zombie)\n");
  EXPECT_EQ(Reader().ReadResident(44).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(HostMemoryTest, NoMemoryControllerIsNotFound) {
  Write("proc/self/cgroup", "8:pids:/\n0::/\n");
  EXPECT_EQ(Reader().ReadCgroup().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(HostMemoryTest, AllowedIsTheSmallerOfMachineAndGroup) {
  EXPECT_EQ(*Reader().ReadAllowed(), MiB(512)) << "no group: the machine's";
  WriteUnifiedGroup();
  EXPECT_EQ(*Reader().ReadAllowed(), MiB(150)) << "limit 400 less used 250";
  WriteUnifiedLevel("jobs/one", GiB(8), MiB(300));
  EXPECT_EQ(*Reader().ReadAllowed(), MiB(512)) << "the machine has less than the group allows";
  WriteUnifiedLevel("jobs/one", MiB(100), MiB(300));
  EXPECT_EQ(*Reader().ReadAllowed(), Bytes{}) << "over its limit: nothing, not a negative number";
}

TEST(HostMemoryReader, ReadsThisMachine) {
  const HostMemoryReader reader;
  const auto host = reader.ReadHost();
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_GT(host->total, host->available);
  const auto resident = reader.ReadResident();
  ASSERT_TRUE(resident.ok()) << resident.status();
  EXPECT_GT(*resident, MiB(1));
  EXPECT_LT(*resident, host->total);
}

}  // namespace
}  // namespace hpo
