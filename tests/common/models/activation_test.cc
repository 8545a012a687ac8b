#include "common/models/activation.h"

#include "gtest/gtest.h"

namespace hpo {
namespace {

TEST(ActivationOf, KnowsTheLibrarysNames) {
  EXPECT_EQ(ActivationOf("gelu"), Activation::kGelu);
  for (const char* name : {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"}) {
    EXPECT_EQ(ActivationOf(name), Activation::kGeluTanh) << name;
  }
  for (const char* name : {"silu", "swish"}) EXPECT_EQ(ActivationOf(name), Activation::kSilu);
  EXPECT_EQ(ActivationOf("relu"), Activation::kRelu);
  EXPECT_EQ(ActivationOf("tanh"), Activation::kTanh);
  for (const char* name : {"", "GELU", "relu6", "softplus"}) {
    EXPECT_EQ(ActivationOf(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace hpo
