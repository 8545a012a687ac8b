#include "worker/trainer/data/probe.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/base/random_state.h"

namespace hpo::trainer {
namespace {

using testing::ElementsAre;

text::EncodedDataset RowsOfLengths(const std::vector<int64_t>& lengths) {
  text::EncodedDataset data;
  data.token_offsets.push_back(0);
  for (const int64_t length : lengths) {
    data.ids.insert(data.ids.end(), static_cast<size_t>(length), 1);
    data.token_offsets.push_back(static_cast<int64_t>(data.ids.size()));
  }
  return data;
}

TEST(HeaviestBatch, IsTheLongestRowsOfTwoParts) {
  const text::EncodedDataset data = RowsOfLengths({3, 9, 4, 7, 9, 1});
  const auto rows = [&](int64_t effective_batch, int64_t micro_batch) {
    return HeaviestBatch(data, {.effective_batch = effective_batch, .micro_batch = micro_batch});
  };
  EXPECT_THAT(rows(6, 1), ElementsAre(1, 4));
  EXPECT_THAT(rows(6, 2), ElementsAre(1, 4, 3, 2));
  EXPECT_THAT(rows(2, 2), ElementsAre(1, 4));                // one part: the whole batch
  EXPECT_THAT(rows(3, 2), ElementsAre(1, 4, 3));             // the second part is shorter
  EXPECT_THAT(rows(64, 64), ElementsAre(1, 4, 3, 2, 0, 5));  // no more than there are
  EXPECT_THAT(rows(int64_t{1} << 62, int64_t{1} << 62), testing::SizeIs(6));
}

TEST(RandomStateKeeper, PutsTheStateBack) {
  TestDevice();
  at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
  generator.set_current_seed(11);
  const torch::Tensor skipped = at::rand({3});
  torch::Tensor expected;
  {
    const RandomStateKeeper outer(torch::kCPU);
    expected = at::rand({1000});
  }
  {
    const RandomStateKeeper keeper(torch::kCPU);
    const Bytes live = TestDevice().memory->Read().live;
    generator.set_current_seed(5);
    EXPECT_FALSE(at::equal(at::rand({1000}), expected));
    EXPECT_EQ(TestDevice().memory->Read().live, live) << "the keeper holds no tensor";
  }
  EXPECT_TRUE(at::equal(at::rand({1000}), expected));
}

}  // namespace
}  // namespace hpo::trainer
