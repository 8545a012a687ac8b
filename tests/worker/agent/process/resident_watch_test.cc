#include "worker/agent/process/resident_watch.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

constexpr int kAll = 20;

// After how many attempts a leak is told of a process that holds `mib[i]` after attempt i, whose
// tensors took `tensors[i]`; 0: never.
size_t ToldAfter(const std::vector<int64_t>& mib, const std::vector<int64_t>& tensors = {}) {
  ResidentWatch watch;
  for (size_t i = 0; i < mib.size(); ++i) {
    const Bytes on_host = i < tensors.size() ? MiB(tensors[i]) : Bytes{};
    if (watch.AfterAttempt(MiB(mib[i]), on_host)) return i + 1;
  }
  return 0;
}

std::vector<int64_t> Growing(int64_t from, int64_t each) {
  std::vector<int64_t> mib;
  for (int i = 0; i < kAll; ++i) mib.push_back(from + each * i);
  return mib;
}

TEST(ResidentWatch, TellsAtOnceOfASteadyGrowthBeyondTheMargin) {
  EXPECT_EQ(ToldAfter(Growing(500, 11)), 10u) << "66 MiB in six of eight";
  EXPECT_EQ(ToldAfter(Growing(500, 10)), 0u) << "60 MiB in six";
  EXPECT_EQ(ToldAfter(Growing(4000, 30)), 0u) << "5 % are more than 180 MiB";
  EXPECT_EQ(ToldAfter(Growing(4000, 45)), 10u);
}

TEST(ResidentWatch, SaysHowMuch) {
  ResidentWatch watch;
  std::optional<Bytes> growth;
  for (const int64_t mib : Growing(500, 20)) {
    if ((growth = watch.AfterAttempt(MiB(mib), Bytes{})).has_value()) break;
  }
  EXPECT_EQ(growth, MiB(160));
}

TEST(ResidentWatch, AJumpIsNoLeak) {
  for (size_t at = 1; at < kAll; ++at) {
    std::vector<int64_t> mib(kAll, 500);
    for (size_t i = at; i < kAll; ++i) mib[i] += 900;
    EXPECT_EQ(ToldAfter(mib), 0u) << at;
    for (size_t i = at + 2; i < kAll; ++i) mib[i] += 900;
    EXPECT_EQ(ToldAfter(mib), 0u) << "two, " << at;
  }
}

TEST(ResidentWatch, AttemptsThatGiveBackWhatTheyTookAreNoLeak) {
  std::vector<int64_t> mib;
  for (int i = 0; i < kAll; ++i) mib.push_back(i % 2 == 0 ? 500 : 900);
  EXPECT_EQ(ToldAfter(mib), 0u);
}

TEST(ResidentWatch, ALeakAmongNoiseIsTold) {
  std::vector<int64_t> mib = Growing(500, 80);
  for (size_t i = 3; i < kAll; i += 4) mib[i] -= 60;
  EXPECT_GT(ToldAfter(mib), 0u);
}

// A heap that larger and larger models have widened.
TEST(ResidentWatch, WhatTensorsOnceNeededIsNoLeak) {
  const std::vector<int64_t> tensors = Growing(100, 50);
  std::vector<int64_t> mib = tensors;
  for (int64_t& resident : mib) resident += 400;
  EXPECT_EQ(ToldAfter(mib, tensors), 0u);
  EXPECT_EQ(ToldAfter(mib), 10u);
  EXPECT_EQ(ToldAfter(Growing(500, 20), std::vector<int64_t>(kAll, 100)), 10u);
}

}  // namespace
}  // namespace hpo::agent
