// Which card, how many bytes of it, and how several cards' workers are run as one.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/agent/device/capacity.h"
#include "worker/agent/device/select_gpu.h"
#include "worker/agent/loop/fleet.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

GpuState Card(int64_t index, const std::string& uuid) {
  GpuState gpu;
  gpu.index = index;
  gpu.uuid = uuid;
  gpu.name = "NVIDIA H200";
  gpu.driver = "580.1";
  gpu.total = GiB(141);  // one of them the driver's own
  gpu.free = GiB(100);
  gpu.used = GiB(40);
  return gpu;
}

class FakeProbe final : public GpuProbe {
 public:
  absl::StatusOr<std::vector<GpuState>> List() override { return std::vector<GpuState>{card_}; }
  absl::StatusOr<GpuState> Read(const std::string&) override {
    if (lost_) return absl::UnavailableError("card 0 does not answer");
    return card_;
  }

  GpuState card_ = Card(0, "GPU-a");
  bool lost_ = false;
};

// ---- SelectGpus ----

std::vector<std::string> Selected(const std::vector<GpuState>& gpus,
                                  const VisibilityVariables& variables,
                                  const std::string& selector) {
  const absl::StatusOr<VisibleGpus> selected = SelectGpus(gpus, variables, selector);
  EXPECT_TRUE(selected.ok()) << selected.status();
  std::vector<std::string> uuids;
  if (!selected.ok()) return uuids;
  for (const GpuState& gpu : selected->gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

TEST(SelectGpus, ByNumberByUuidAndByItsStart) {
  const std::vector<GpuState> gpus = {Card(0, "GPU-aaa-1"), Card(1, "GPU-bbb-2")};
  EXPECT_THAT(Selected(gpus, {}, "1"), ElementsAre("GPU-bbb-2"));
  EXPECT_THAT(Selected(gpus, {}, "GPU-aaa-1"), ElementsAre("GPU-aaa-1"));
  EXPECT_THAT(Selected(gpus, {}, "GPU-b"), ElementsAre("GPU-bbb-2"));
  for (const char* all : {"visible", "all"}) {
    EXPECT_THAT(Selected(gpus, {}, all), ElementsAre("GPU-aaa-1", "GPU-bbb-2"));
  }
}

TEST(SelectGpus, OfThoseThatTheVariableShows) {
  const std::vector<GpuState> gpus = {Card(0, "GPU-aaa-1"), Card(1, "GPU-bbb-2"),
                                      Card(2, "GPU-ccc-3")};
  const VisibilityVariables shown{.visible = "2,1"};
  for (const char* all : {"visible", "all"}) {
    EXPECT_THAT(Selected(gpus, shown, all), ElementsAre("GPU-ccc-3", "GPU-bbb-2"));
  }
  EXPECT_THAT(Selected(gpus, shown, "0"), ElementsAre("GPU-ccc-3")) << "a place in the list";
  EXPECT_THAT(Selected(gpus, shown, "1"), ElementsAre("GPU-bbb-2"));
  EXPECT_THAT(Selected(gpus, shown, "GPU-b"), ElementsAre("GPU-bbb-2"));
}

TEST(SelectGpus, WhatTheVariableHidesIsRefused) {
  const std::vector<GpuState> gpus = {Card(0, "GPU-aaa-1"), Card(1, "GPU-bbb-2"),
                                      Card(2, "GPU-ccc-3")};
  const VisibilityVariables shown{.visible = "2,1"};
  const absl::Status hidden = SelectGpus(gpus, shown, "GPU-a").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(hidden));
  EXPECT_THAT(std::string(hidden.message()),
              HasSubstr("--gpu GPU-a: CUDA_VISIBLE_DEVICES=2,1 hides this GPU"));
  const absl::Status beyond = SelectGpus(gpus, shown, "2").status();
  EXPECT_TRUE(absl::IsNotFound(beyond));
  EXPECT_THAT(std::string(beyond.message()), HasSubstr("expected a number from 0 to 1"));
  for (const char* none : {"", "-1", "7"}) {
    SCOPED_TRACE(none);
    const absl::Status all = SelectGpus(gpus, {.visible = none}, "visible").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(all));
    EXPECT_THAT(std::string(all.message()), HasSubstr(std::string("CUDA_VISIBLE_DEVICES=") + none));
    EXPECT_EQ(all.message().find('\n'), absl::string_view::npos);
  }
}

TEST(SelectGpus, SeveralInTheOrderInWhichTheyAreNamed) {
  const std::vector<GpuState> gpus = {Card(0, "GPU-aaa-1"), Card(1, "GPU-bbb-2"),
                                      Card(2, "GPU-ccc-3")};
  EXPECT_THAT(Selected(gpus, {}, "2,GPU-a"), ElementsAre("GPU-ccc-3", "GPU-aaa-1"));
  EXPECT_TRUE(absl::IsNotFound(SelectGpus(gpus, {}, "0,7").status()));
  EXPECT_THAT(std::string(SelectGpus(gpus, {}, "0,GPU-a").status().message()),
              HasSubstr("--gpu 0,GPU-a: expected each GPU once, got GPU-a again"));
}

TEST(SetsOfGpus, InTheirOrder) {
  const std::vector<GpuState> gpus = {Card(0, "a"), Card(1, "b"), Card(2, "c"), Card(3, "d"),
                                      Card(4, "e")};
  const auto uuids = [&](int size) {
    std::vector<std::string> sets;
    const std::vector<std::vector<GpuState>> found = SetsOfGpus(gpus, size).value();
    for (const std::vector<GpuState>& set : found) sets.push_back(UuidsOf(set));
    return sets;
  };
  EXPECT_THAT(uuids(1), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(uuids(2), ElementsAre("a,b", "c,d"));
  EXPECT_THAT(uuids(5), ElementsAre("a,b,c,d,e"));
  const absl::Status few = SetsOfGpus(gpus, 8).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(few));
  EXPECT_THAT(std::string(few.message()), HasSubstr("expected at least 8 GPUs"));
  EXPECT_THAT(std::string(few.message()), HasSubstr("got 5"));
}

TEST(SetsOfGpus, NotOfMigDevices) {
  const std::vector<GpuState> gpus = {Card(0, "MIG-a"), Card(0, "MIG-b")};
  EXPECT_TRUE(SetsOfGpus(gpus, 1).ok());
  EXPECT_THAT(std::string(SetsOfGpus(gpus, 2).status().message()), HasSubstr("got MIG devices"));
}

TEST(SelectGpus, ANumberOfSeveralMigDevicesIsRefused) {
  GpuState first = Card(0, "MIG-a");
  GpuState second = Card(0, "MIG-b");
  first.parent_uuid = second.parent_uuid = "GPU-aaa";
  const std::vector<GpuState> gpus = {first, second};
  EXPECT_TRUE(absl::IsInvalidArgument(SelectGpus(gpus, {}, "0").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(SelectGpus(gpus, {}, "GPU-aaa").status()));
  EXPECT_THAT(Selected(gpus, {}, "MIG-b"), ElementsAre("MIG-b"));
  EXPECT_THAT(Selected(gpus, {}, "visible"), ElementsAre("MIG-a", "MIG-b"));
}

TEST(SelectGpus, ACardThatIsNotThereIsOneLineWithThoseThatAre) {
  const std::vector<GpuState> gpus = {Card(0, "GPU-aaa-1"), Card(1, "GPU-bbb-2")};
  const absl::Status status = SelectGpus(gpus, {}, "7").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--gpu 7"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("0: NVIDIA H200"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("GPU-bbb-2"));
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  EXPECT_TRUE(absl::IsNotFound(SelectGpus({}, {}, "0").status()));
  EXPECT_TRUE(absl::IsNotFound(SelectGpus({}, {}, "visible").status()));
  EXPECT_TRUE(absl::IsNotFound(SelectGpus(gpus, {}, "").status()));
}

TEST(SelectGpus, AStartThatSeveralShareIsRefused) {
  const std::vector<GpuState> gpus = {Card(0, "GPU-aaa-1"), Card(1, "GPU-bbb-2")};
  EXPECT_TRUE(absl::IsInvalidArgument(SelectGpus(gpus, {}, "GPU-").status()));
}

// ---- Capacity ----

TEST(CpuCapacity, IsItsLimit) {
  CpuCapacity capacity(GiB(2));
  EXPECT_EQ(*capacity.Available(), GiB(2));
  const DeviceProfile profile = *capacity.Profile();
  EXPECT_EQ(profile.kind, "cpu");
  EXPECT_EQ(profile.total, GiB(2));
  EXPECT_EQ(profile.base, Bytes{});
  EXPECT_FALSE(profile.name.empty());
  EXPECT_GE(profile.threads, 1);
}

TEST(GpuCapacity, IsWhatIsFree) {
  FakeProbe probe;
  GpuCapacity capacity(probe, "GPU-a", std::nullopt);
  EXPECT_EQ(*capacity.Available(), GiB(100));
  const DeviceProfile profile = *capacity.Profile();
  EXPECT_EQ(profile.kind, "cuda");
  EXPECT_EQ(profile.uuid, "GPU-a");
  EXPECT_EQ(profile.total, GiB(140)) << "without the driver's own";
  EXPECT_GT(profile.base, Bytes{});
}

TEST(GpuCapacity, OurOwnWarmTrainerDoesNotCount) {
  FakeProbe probe;
  GpuCapacity capacity(probe, "GPU-a", std::nullopt);
  probe.card_.processes = {{.pid = 10, .used = GiB(30)}};
  capacity.TrainerStarting();
  capacity.TrainerRuns(20);
  probe.card_.processes.push_back({.pid = 20, .used = GiB(5)});
  probe.card_.free = GiB(95);
  EXPECT_EQ(*capacity.Available(), GiB(100));
  capacity.TrainerRuns(std::nullopt);
  EXPECT_EQ(*capacity.Available(), GiB(95));
}

// Inside a container the driver's pids are the host's.
TEST(GpuCapacity, AProcessThatCameWithOurTrainerIsTakenForIt) {
  FakeProbe probe;
  GpuCapacity capacity(probe, "GPU-a", std::nullopt);
  probe.card_.processes = {{.pid = 7010, .used = GiB(30)}};
  capacity.TrainerStarting();
  capacity.TrainerRuns(20);
  probe.card_.processes.push_back({.pid = 7020, .used = GiB(5)});
  probe.card_.processes.push_back({.pid = 7021, .used = std::nullopt});
  EXPECT_EQ(*capacity.Available(), GiB(105));
}

TEST(GpuCapacity, AMemoryLimitCutsBoth) {
  FakeProbe probe;
  GpuCapacity capacity(probe, "GPU-a", GiB(8));
  EXPECT_EQ(*capacity.Available(), GiB(8));
  EXPECT_EQ(capacity.Profile()->total, GiB(8));
  probe.card_.free = GiB(3);
  EXPECT_EQ(*capacity.Available(), GiB(3));
}

TEST(GpuCapacity, ACardThatDoesNotAnswerIsAnError) {
  FakeProbe probe;
  GpuCapacity capacity(probe, "GPU-a", std::nullopt);
  probe.lost_ = true;
  EXPECT_TRUE(absl::IsUnavailable(capacity.Available().status()));
  EXPECT_TRUE(absl::IsUnavailable(capacity.Profile().status()));
}

TEST(GpuSetCapacity, IsThatOfTheSmallestGpu) {
  FakeProbe large;
  FakeProbe small;
  small.card_ = Card(1, "GPU-b");
  small.card_.free = GiB(60);
  small.card_.used = GiB(10);
  std::vector<std::unique_ptr<GpuCapacity>> gpus;
  gpus.push_back(std::make_unique<GpuCapacity>(large, "GPU-a", std::nullopt));
  gpus.push_back(std::make_unique<GpuCapacity>(small, "GPU-b", std::nullopt));
  GpuSetCapacity set(std::move(gpus));
  EXPECT_EQ(set.Profile()->uuid, "GPU-b");
  EXPECT_EQ(set.Profile()->total, GiB(70));
  EXPECT_EQ(*set.Available(), GiB(60));
  large.card_.free = GiB(30);
  EXPECT_EQ(*set.Available(), GiB(30));
  large.lost_ = true;
  EXPECT_TRUE(absl::IsUnavailable(set.Available().status()));
  EXPECT_TRUE(absl::IsUnavailable(set.Profile().status()));
}

// ---- Several GPUs ----

TEST(Fleet, TheGravestCodeStandsForAll) {
  const std::pair<std::vector<int>, ExitCode> cases[] = {
      {{0, 0}, ExitCode::kDone},
      {{0, 7}, ExitCode::kStudyFailed},
      {{7, 75}, ExitCode::kTryAgain},
      {{75, 130}, ExitCode::kKilled},
      {{130, 70}, ExitCode::kInternal},
      {{70, 77}, ExitCode::kUnhealthy},
      {{77, 78, 0}, ExitCode::kConfiguration},
      {{0, 139}, ExitCode::kInternal},
      {{0, 1}, ExitCode::kInternal},
      {{}, ExitCode::kDone},
  };
  for (const auto& [codes, expected] : cases) {
    EXPECT_EQ(CombineExitCodes(codes), expected) << ::testing::PrintToString(codes);
  }
}

TEST(Fleet, EachCardsWorkerIsGivenItsCardLast) {
  const std::vector<GpuState> one = {Card(1, "GPU-b")};
  EXPECT_THAT(GpuArguments({"--gpu", "all", "--stay"}, one, ""),
              ElementsAre("--gpu", "all", "--stay", "--gpu", "GPU-b"));
  const std::vector<GpuState> set = {Card(1, "GPU-b"), Card(2, "GPU-c")};
  EXPECT_THAT(GpuArguments({"--gpu", "all"}, set, "node7:gpu1"),
              ElementsAre("--gpu", "all", "--gpu", "GPU-b,GPU-c", "--name", "node7:gpu1"));
}

TEST(Fleet, WaitsForEveryWorker) {
  StopSignal stop;
  EXPECT_EQ(RunFleet("/bin/sh", {{"-c", "exit 0"}, {"-c", "exit 75"}}, stop), ExitCode::kTryAgain);
  EXPECT_EQ(RunFleet("/bin/sh", {{"-c", "kill -SEGV $$"}}, stop), ExitCode::kInternal);
}

TEST(Fleet, PassesASignalOnToEveryWorker) {
  StopSignal stop;
  stop.Raise();
  // Both would sleep past the test's time-out; both die of SIGTERM, which is no code of a worker.
  const std::vector<std::string> sleeper = {"-c", "exec sleep 1000"};
  EXPECT_EQ(RunFleet("/bin/sh", {sleeper, sleeper}, stop), ExitCode::kInternal);
}

// From here on this process gets no descriptors of processes.
void DenyProcessDescriptors() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENFILE),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(program), .filter = program};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(1);
}

TEST(Fleet, AWorkerWhoseEndCouldNotBeSeenIsEndedAtOnce) {
  const auto run = [] {
    alarm(20);
    DenyProcessDescriptors();
    StopSignal stop;
    _exit(static_cast<int>(RunFleet("/bin/sh", {{"-c", "exec sleep 1000"}}, stop)));
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(static_cast<int>(ExitCode::kInternal)), "");
}

TEST(Fleet, AProgramThatIsNotThereIsAnInternalError) {
  StopSignal stop;
  EXPECT_EQ(RunFleet("/nowhere/hpo-worker", {{}}, stop), ExitCode::kInternal);
}

}  // namespace
}  // namespace hpo::agent
