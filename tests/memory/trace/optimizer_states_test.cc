#include "memory/trace/optimizer_states.h"

#include <numeric>

#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

int64_t Total(const OptimizerSpec& spec, const std::vector<ParameterExtent>& parameters) {
  const std::vector<int64_t> bytes = OptimizerBytes(spec, parameters);
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

// bert-base's word embeddings, one of its matrices, one of its vectors.
const std::vector<ParameterExtent> kParameters = {
    {.rows = 30522, .columns = 768}, {.rows = 3072, .columns = 768}, {.rows = 768}};
constexpr int64_t kElements = 30522 * 768 + 3072 * 768 + 768;

TEST(OptimizerStates, BytesForEachElement) {
  EXPECT_EQ(Total({.kind = OptimizerKind::kAdamW}, kParameters), 8 * kElements + 4);
  EXPECT_EQ(Total({.kind = OptimizerKind::kSgd}, kParameters), 4 * kElements);
  EXPECT_EQ(Total({.kind = OptimizerKind::kSgd, .has_momentum = false}, kParameters), 0);
}

TEST(OptimizerStates, EightBitsTakeAQuarterAndScratchOfAFixedSize) {
  const int64_t matrices = kElements - 768;
  const int64_t states = 2 * matrices + 2 * 4 * matrices / 256 + 8 * 768 + 4;
  const int64_t scratch = 4 * 4 * (1 << 18) + 2 * 4 * 511 + 16;
  EXPECT_EQ(Total({.kind = OptimizerKind::kAdamW8bit}, kParameters), states + scratch);
}

TEST(OptimizerStates, AdafactorKeepsRowsAndColumns) {
  const int64_t states = 4 * (30522 + 768 + 3072 + 768 + 768);
  const AdafactorScratch scratch = AdafactorScratchOf(kParameters);
  EXPECT_EQ(scratch.squares, (1 << 18) / 768 * 768);
  EXPECT_EQ(Total({.kind = OptimizerKind::kAdafactor}, kParameters),
            states + 4 * (scratch.squares + 30522 + 2 * 768 + AdafactorScratch::kScalars));
}

TEST(OptimizerStates, SmallParametersAreNotQuantized) {
  const OptimizerSpec spec{.kind = OptimizerKind::kAdamW8bit};
  EXPECT_EQ(StateBytes(spec, {.rows = 4095}), (std::vector<int64_t>{4 * 4095, 4 * 4095}));
  EXPECT_EQ(StateBytes(spec, {.rows = 4097}), (std::vector<int64_t>{4352, 68, 4352, 68}));
  EXPECT_EQ(OptimizerBytes(spec, std::vector<ParameterExtent>{{.rows = 10}}),
            (std::vector<int64_t>{40, 40, 4}));
}

TEST(OptimizerStates, NamesGoThereAndBack) {
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kAdamW8bit,
                                   OptimizerKind::kAdafactor, OptimizerKind::kSgd}) {
    EXPECT_EQ(*ParseOptimizerKind(Name(kind)), kind);
  }
  EXPECT_EQ(ParseOptimizerKind("lion").status().message(),
            "expected adamw, adamw_8bit, adafactor or sgd, got 'lion'");
}

}  // namespace
}  // namespace hpo::memory
