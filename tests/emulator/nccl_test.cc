// NCCL's communicators without torch: ranks are threads or processes, values are put where the
// device's memory would be.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/device_values.h"
#include "emulator/machine.h"
#include "emulator/nccl/buffers.h"
#include "emulator/nccl/communicator.h"
#include "emulator/nccl/group.h"
#include "emulator/nccl/reduction.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::emulator::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kNumDevices = 4;

// Before the first look at the machine.
class FourGpus : public ::testing::Environment {
 public:
  void SetUp() override {
    setenv("HPO_EMULATED_CARDS", std::to_string(kNumDevices).c_str(), 1);
    setenv("HPO_EMULATED_WAIT", "60", 1);
    setenv("HPO_EMULATED_STATE", StateFile().c_str(), 1);
  }
  void TearDown() override { unlink(StateFile().c_str()); }

  static std::string StateFile() {
    return ::testing::TempDir() + "/hpo_nccl_test_" + std::to_string(getpid());
  }
};
const auto* const kFourGpus = ::testing::AddGlobalTestEnvironment(new FourGpus);

template <typename T>
std::string Bytes(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

std::string NewName() {
  static int number = 0;
  return "test" + std::to_string(getpid()) + "x" + std::to_string(number++);
}

// Two ranges of device memory of each rank; nothing is there.
const char* From(int rank) { return reinterpret_cast<const char*>(0x7e00'0000'0000) + rank * 4096; }
char* To(int rank) { return const_cast<char*>(From(rank)) + 16 * kMiB; }

// Does `work` in a thread for each rank of a new communicator.
void WithRanks(int num_ranks, const std::function<void(int, Communicator&)>& work) {
  const std::string name = NewName();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([=] {
      std::shared_ptr<Communicator> communicator;
      const Place place{.name = name, .num_ranks = num_ranks, .rank = rank, .device = rank};
      ASSERT_EQ(Communicator::Join(place, communicator).text, "");
      ASSERT_EQ(communicator->AwaitRanks().text, "");
      work(rank, *communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Outcome Do(Communicator& communicator, const Operation& operation, int rank) {
  Transfer transfer{.operation = operation, .from = From(rank), .to = To(rank)};
  const Outcome begun = communicator.Begin(transfer);
  return begun.ok() ? communicator.End(transfer) : begun;
}

// What each of two ranks gets, where rank r gives {10 r + 1, 10 r + 2} of int32.
std::vector<std::optional<std::string>> ResultOf(const Operation& operation, size_t bytes) {
  std::vector<std::optional<std::string>> results(2);
  WithRanks(2, [&](int rank, Communicator& communicator) {
    Remember(From(rank), Bytes<int32_t>({10 * rank + 1, 10 * rank + 2}));
    Forget(To(rank), 64);
    EXPECT_EQ(Do(communicator, operation, rank).text, "");
    results[static_cast<size_t>(rank)] = KnownBytes(To(rank), bytes);
  });
  return results;
}

TEST(Nccl, CollectivesCarryKnownValues) {
  using V = std::vector<int32_t>;
  const struct {
    Operation operation;
    V first;
    V second;  // empty: nothing arrives there
  } cases[] = {
      {{Kind::kAllReduce, kInt32, kSum, 0, 2}, {12, 14}, {12, 14}},
      {{Kind::kAllReduce, kInt32, kMaximum, 0, 2}, {11, 12}, {11, 12}},
      {{Kind::kBroadcast, kInt32, kSum, 1, 2}, {11, 12}, {11, 12}},
      {{Kind::kReduce, kInt32, kProduct, 0, 2}, {11, 24}, {}},
      {{Kind::kAllGather, kInt32, kSum, 0, 2}, {1, 2, 11, 12}, {1, 2, 11, 12}},
      {{Kind::kReduceScatter, kInt32, kSum, 0, 1}, {12}, {14}},
      {{Kind::kAllToAll, kInt32, kSum, 0, 1}, {1, 11}, {2, 12}},
      {{Kind::kGather, kInt32, kSum, 1, 2}, {}, {1, 2, 11, 12}},
      {{Kind::kScatter, kInt32, kSum, 1, 1}, {11}, {12}},
  };
  for (const auto& [operation, first, second] : cases) {
    SCOPED_TRACE(Describe(operation));
    const auto results =
        ResultOf(operation, sizeof(int32_t) * std::max(first.size(), second.size()));
    EXPECT_EQ(results[0].value_or(""), Bytes(first));
    EXPECT_EQ(results[1].value_or(""), Bytes(second));
  }
}

TEST(Nccl, WhatOneRankDoesNotKnowIsUnknownForAll) {
  WithRanks(2, [](int rank, Communicator& communicator) {
    Remember(From(rank), Bytes<float>({1, 2}));
    Remember(To(rank), Bytes<float>({3, 4}));
    if (rank == 1) Forget(From(rank), 4);
    EXPECT_TRUE(Do(communicator, {.type = kFloat32, .count = 2}, rank).ok());
    EXPECT_EQ(KnownBytes(To(rank), 4), std::nullopt);
    // The parts of a gathered result are known each on its own.
    Remember(From(rank), Bytes<float>({1, 2}));
    if (rank == 1) Forget(From(rank), 4);
    EXPECT_TRUE(
        Do(communicator, {.kind = Kind::kAllGather, .type = kFloat32, .count = 2}, rank).ok());
    EXPECT_THAT(KnownBytes(To(rank), 8), Optional(Bytes<float>({1, 2})));
    EXPECT_EQ(KnownBytes(To(rank) + 8, 8), std::nullopt);
  });
}

TEST(Nccl, OneRankKeepsItsValuesOfAnySize) {
  WithRanks(1, [](int rank, Communicator& communicator) {
    const std::string large(2 * kLongestValue, 'x');
    Remember(From(rank), large);
    EXPECT_TRUE(Do(communicator, {.kind = Kind::kAllReduce, .count = large.size()}, rank).ok());
    EXPECT_THAT(KnownBytes(To(rank), large.size()), Optional(large));
  });
}

// A sender and the root of a broadcast go on, and so does everybody where values are too large.
TEST(Nccl, NobodyWaitsForValuesThatDoNotTravel) {
  const Operation large{.type = kFloat32, .count = kLongestValue};
  const Operation send{.kind = Kind::kSend, .root = 1, .count = 4};
  const Operation broadcast{.kind = Kind::kBroadcast, .root = 0, .count = 4};
  std::shared_ptr<Communicator> first;
  std::shared_ptr<Communicator> second;
  const std::string name = NewName();
  ASSERT_TRUE(Communicator::Join({name, 2, 0, 0}, first).ok());
  ASSERT_TRUE(Communicator::Join({name, 2, 1, 1}, second).ok());
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Do(*first, large, 0).text, "");
  for (int i = 0; i < 2 * static_cast<int>(RankFile::kNumLetters); ++i) {
    Remember(From(0), "abcd");
    ASSERT_EQ(Do(*first, send, 0).text, "");
  }
  Remember(From(0), "efgh");
  ASSERT_EQ(Do(*first, broadcast, 0).text, "");
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Do(*second, large, 1).text, "");
  ASSERT_EQ(Do(*second, broadcast, 1).text, "");
  EXPECT_THAT(KnownBytes(To(1), 4), Optional(std::string("efgh")));
  // The oldest letters were dropped: they are read as unknown, the others truly.
  const Operation receive{.kind = Kind::kReceive, .root = 0, .count = 4};
  ASSERT_EQ(Do(*second, receive, 1).text, "");
  EXPECT_EQ(KnownBytes(To(1), 4), std::nullopt);
  for (size_t i = 0; i < RankFile::kNumLetters; ++i) ASSERT_EQ(Do(*second, receive, 1).text, "");
  EXPECT_THAT(KnownBytes(To(1), 4), Optional(std::string("abcd")));
}

// Three ranks in a ring, each of which asks for its value before it sends its own.
TEST(Nccl, AReceiverWaitsWhenTheValueIsRead) {
  WithRanks(3, [](int rank, Communicator& communicator) {
    const Operation receive{.kind = Kind::kReceive, .root = (rank + 2) % 3, .count = 4};
    const Operation send{.kind = Kind::kSend, .root = (rank + 1) % 3, .count = 4};
    Remember(From(rank), std::string(4, static_cast<char>('a' + rank)));
    EXPECT_TRUE(Do(communicator, receive, rank).ok());
    EXPECT_TRUE(Do(communicator, send, rank).ok());
    EXPECT_THAT(KnownBytes(To(rank), 4),
                Optional(std::string(4, static_cast<char>('a' + (rank + 2) % 3))));
  });
}

TEST(Nccl, AReceiverOfAnotherSizeFailsItsNextCall) {
  WithRanks(2, [](int rank, Communicator& communicator) {
    const Kind kind = rank == 0 ? Kind::kSend : Kind::kReceive;
    const uint64_t count = rank == 0 ? 4 : 8;
    EXPECT_TRUE(Do(communicator, {.kind = kind, .root = 1 - rank, .count = count}, rank).ok());
    if (rank == 0) return;
    EXPECT_EQ(KnownBytes(To(rank), 8), std::nullopt);
    const Outcome outcome = Do(communicator, {.count = 1}, rank);
    EXPECT_EQ(outcome.code, kInvalidUsage);
    EXPECT_EQ(outcome.text,
              "ranks disagree: rank 0 does Send of 4 uint8 to rank 1, "
              "rank 1 does Recv of 8 uint8 from rank 0");
  });
}

TEST(Nccl, RanksThatDisagreeAreNamed) {
  WithRanks(2, [](int rank, Communicator& communicator) {
    EXPECT_TRUE(Do(communicator, {.type = kFloat32, .count = 1}, rank).ok());
    const Outcome outcome =
        Do(communicator, {.type = kFloat32, .count = rank == 0 ? 4U : 5U}, rank);
    EXPECT_EQ(outcome.code, kInvalidUsage);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("collective 2 of communicator"),
                                    HasSubstr("AllReduce of 4 float32 (sum)"),
                                    HasSubstr("AllReduce of 5 float32 (sum)")));
    EXPECT_EQ(communicator.failure().text, outcome.text);
  });
}

TEST(Nccl, TheEndOfAWaitNamesTheCollectiveAndTheRanks) {
  std::shared_ptr<RankFile> file;
  ASSERT_TRUE(RankFile::Open({.name = NewName(), .num_ranks = 3, .patience = {}}, file).ok());
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(file->Join(rank, rank).ok());
  Meetings meetings(*file, 1);
  const Operation barrier{.type = kUint8, .count = 1};
  uint64_t number = 0;
  Values values;
  ASSERT_TRUE(meetings.Arrive(barrier, std::nullopt, number).ok());
  const Outcome outcome = meetings.Finish(barrier, number, values);
  EXPECT_EQ(outcome.code, kRemoteError);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("AllReduce of 1 uint8 (sum), collective 1"),
                                  HasSubstr("rank 1 waited 0 s for ranks 0, 2")));
}

TEST(Nccl, ARankWhoseProcessEndsReleasesTheOthers) {
  const std::string name = NewName();
  const pid_t child = fork();
  std::shared_ptr<Communicator> communicator;
  const int rank = child == 0 ? 1 : 0;
  const bool joined = Communicator::Join({name, 2, rank, rank}, communicator).ok() &&
                      communicator->AwaitRanks().ok();
  if (child == 0) _exit(joined ? 0 : 1);
  ASSERT_TRUE(joined);
  EXPECT_EQ(access((FourGpus::StateFile() + ".nccl-" + name).c_str(), F_OK), -1)
      << "when all have joined, the file has no name any more";
  const Outcome outcome = Do(*communicator, {.type = kInt64, .count = 1}, rank);
  EXPECT_EQ(outcome.code, kRemoteError);
  EXPECT_THAT(outcome.text, HasSubstr("rank 1 (process " + std::to_string(child) + ") has ended"));
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Nccl, ProcessesExchangeValues) {
  const std::string name = NewName();
  const pid_t child = fork();
  const int rank = child == 0 ? 1 : 0;
  std::shared_ptr<Communicator> communicator;
  bool good = Communicator::Join({name, 2, rank, rank}, communicator).ok() &&
              communicator->AwaitRanks().ok();
  Remember(From(0), Bytes<double>({rank + 0.5}));
  good = good && Do(*communicator, {.type = kFloat64, .reduction = kAverage, .count = 1}, 0).ok();
  good = good && KnownBytes(To(0), 8) == Bytes<double>({1.0});
  if (child == 0) _exit(good ? 0 : 1);
  EXPECT_TRUE(good);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Nccl, OneGpuTakesOneRank) {
  const std::string name = NewName();
  std::shared_ptr<Communicator> first;
  std::shared_ptr<Communicator> second;
  ASSERT_TRUE(Communicator::Join({name, 2, 0, 3}, first).ok());
  const Outcome outcome = Communicator::Join({name, 2, 1, 3}, second);
  EXPECT_EQ(outcome.code, kInvalidUsage);
  EXPECT_EQ(outcome.text, "Duplicate GPU detected : rank 1 and rank 0 both on GPU 3");
  EXPECT_EQ(first->AwaitRanks().text, outcome.text);
  EXPECT_EQ(Communicator::Join({name, 3, 1, 1}, second).code, kInvalidArgument);
}

TEST(Nccl, UserOperationsMultiplyBeforeTheySum) {
  WithRanks(2, [](int rank, Communicator& communicator) {
    Remember(From(rank), Bytes<float>({2, 4}));
    Transfer transfer{.operation = {.type = kFloat32, .reduction = kNumReductions, .count = 2},
                      .from = From(rank),
                      .to = To(rank)};
    transfer.user_reduction = communicator.AddReduction(Bytes<float>({0.5F + rank}), nullptr);
    EXPECT_GE(transfer.user_reduction, kNumReductions);
    EXPECT_TRUE(communicator.Begin(transfer).ok());
    EXPECT_TRUE(communicator.End(transfer).ok());
    EXPECT_THAT(KnownBytes(To(rank), 8), Optional(Bytes<float>({4, 8})));
  });
}

TEST(Nccl, MemoryIsTakenWhenItIsNeededAndFreeAfterwards) {
  Machine& machine = Machine::Get();
  WithRanks(2, [](int, Communicator&) {});  // kernels are there
  const size_t before = machine.FreeBytes(0);
  const std::string gpu = machine.card(0).product;
  WithRanks(2, [&](int rank, Communicator& communicator) {
    const size_t created = machine.FreeBytes(rank);
    EXPECT_TRUE(Do(communicator, {.type = kInt32, .count = 1}, rank).ok());
    const size_t connected = machine.FreeBytes(rank);
    EXPECT_EQ(created - connected, CollectiveBytes(gpu, {}));
    const Kind kind = rank == 0 ? Kind::kSend : Kind::kReceive;
    EXPECT_TRUE(Do(communicator, {.kind = kind, .root = 1 - rank, .count = 1}, rank).ok());
    EXPECT_EQ(connected - machine.FreeBytes(rank), PeerBytes(gpu, {}));
  });
  EXPECT_EQ(machine.FreeBytes(0), before);
}

// Against what users measured; the names at the constants.
TEST(NcclBuffers, AreThoseThatUsersMeasured) {
  EXPECT_EQ(KernelBytes() + CollectiveBytes("NVIDIA A100-SXM4-80GB", {}), 544 * kMiB);
  EXPECT_EQ(7 * PeerBytes("NVIDIA H100 80GB HBM3", {}), 3136 * kMiB);  // 3.28 GB
  EXPECT_EQ(CollectiveBytes("NVIDIA L40S", {}), 2 * 12 * kMiB);
  EXPECT_EQ(CollectiveBytes("NVIDIA GeForce RTX 4090", {}), 0u);
  EXPECT_EQ(CollectiveBytes("NVIDIA L40S", {.buffer_bytes = kMiB, .max_channels = 1}), 10 * kMiB);
}

TEST(NcclReduction, ReducesEachType) {
  EXPECT_THAT(Reduce(kInt8, kSum, {Bytes<int8_t>({100, 1}), Bytes<int8_t>({100, 2})}),
              Optional(Bytes<int8_t>({-56, 3})));
  EXPECT_THAT(Reduce(kUint64, kProduct, {Bytes<uint64_t>({1ULL << 40}), Bytes<uint64_t>({3})}),
              Optional(Bytes<uint64_t>({3ULL << 40})));
  EXPECT_THAT(Reduce(kInt64, kAverage, {Bytes<int64_t>({-3}), Bytes<int64_t>({0})}),
              Optional(Bytes<int64_t>({-1})));
  EXPECT_THAT(Reduce(kFloat64, kMinimum, {Bytes<double>({1, -2}), Bytes<double>({0, 3})}),
              Optional(Bytes<double>({0, -2})));
  // 1.0 and 0.5, 65504 twice, the smallest twice, -2 and 2.
  EXPECT_THAT(Reduce(kFloat16, kSum,
                     {Bytes<uint16_t>({0x3c00, 0x7bff, 0x0001, 0xc000}),
                      Bytes<uint16_t>({0x3800, 0x7bff, 0x0001, 0x4000})}),
              Optional(Bytes<uint16_t>({0x3e00, 0x7c00, 0x0002, 0x0000})));
  // 1.0 and 2^-8, which is half of the last place: to even.
  EXPECT_THAT(Reduce(kBfloat16, kSum, {Bytes<uint16_t>({0x3f80}), Bytes<uint16_t>({0x3b80})}),
              Optional(Bytes<uint16_t>({0x3f80})));
  EXPECT_EQ(Reduce(kFloat8e4m3, kSum, {"a", "b"}), std::nullopt);
  EXPECT_THAT(Scale(kFloat16, Bytes<uint16_t>({0x4000}), Bytes<uint16_t>({0x3800})),
              Optional(Bytes<uint16_t>({0x3c00})));
}

}  // namespace
}  // namespace hpo::emulator::nccl
