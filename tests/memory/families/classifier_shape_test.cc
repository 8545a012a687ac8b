#include "memory/families/classifier_shape.h"

#include "gtest/gtest.h"
#include "tests/memory/tiny_input.h"

namespace hpo::memory {
namespace {

TEST(HeadParameterBytes, CountsWeightAndBiasOfEveryLayer) {
  ClassifierShape shape{.model = TinyInput().model, .num_labels = 2};
  EXPECT_EQ(HeadParameterBytes(shape, KernelTraits::Cpu()), Bytes{64 + 64});
  shape.head_sizes = {32, 16};
  EXPECT_EQ(HeadParameterBytes(shape, KernelTraits::Cpu()),
            Bytes{(4 * 8 * 32 + 128) + (4 * 32 * 16 + 64) + (4 * 16 * 2 + 64)});
  shape.num_labels = 0;
  EXPECT_EQ(HeadParameterBytes(shape, KernelTraits::Cpu()), Bytes{}) << "there is no head";
}

}  // namespace
}  // namespace hpo::memory
