#include "common/models/model_spec.h"

#include "common/models/model_fields.h"
#include "common/study/model_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

TEST(ModelShapeJson, KeepsEveryField) {
  ModelShape shape = *KnownModelShape("roberta-large");
  shape.hidden_dropout = 0.25;
  shape.attention_dropout = 0.0;
  shape.initializer_range = 0.5;
  shape.hidden_act = "relu";
  const auto again = ModelShapeFromJson(nlohmann::json::parse(ToJson(shape).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, shape);
  for (const char* name : {"microsoft/deberta-v2-xlarge", "google/electra-small-discriminator",
                           "gpt2", "meta-llama/Llama-3.2-3B", "Qwen/Qwen2.5-7B"}) {
    SCOPED_TRACE(name);
    const ModelShape known = *KnownModelShape(name);
    const auto read = ModelShapeFromJson(ToJson(known));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, known);
  }
  nlohmann::json json = ToJson(shape);
  json["num_heads"] = 7;
  EXPECT_EQ(ModelShapeFromJson(json).status().message(),
            "num_heads: expected a divisor of hidden_size 1024, got 7");
}

TEST(ModelShapeJson, ReadsWhatAnOlderVersionWrote) {
  const ModelShape shape = *KnownModelShape("bert-base-uncased");
  nlohmann::json json = ToJson(shape);
  for (const char* added :
       {"num_key_value_heads", "head_size", "embedding_size", "tied_head", "attention_bias",
        "mlp_bias", "embedding_dropout", "relative", "relative_norm", "no_positions",
        "conv_kernel_size", "conv_act", "rope_theta", "rope", "stored_type"}) {
    json.erase(added);
  }
  EXPECT_EQ(json.size(), 14u);
  const auto read = ModelShapeFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, shape);
}

TEST(ModelShapeJson, OfAnUnknownFamilyOnlyTheNameCounts) {
  const auto shape = ModelShapeFromJson({{"family", "t5"}, {"hidden_size", -1}});
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(*shape, ModelShape{.family = "t5"});
  EXPECT_EQ(ModelShapeFromJson({{"hidden_size", 8}}).status().message(), "family: missing");
  EXPECT_EQ(ModelShapeFromJson({{"family", "bert"}}).status().message(), "vocab_size: missing");
}

TEST(CheckTrainable, NamesTheFamiliesAndActivationsThereAre) {
  ModelShape shape = *KnownModelShape("microsoft/deberta-v3-base");
  EXPECT_TRUE(CheckTrainable(shape).ok());
  EXPECT_TRUE(TrainerSupports(shape));
  shape.hidden_act = "softplus";
  EXPECT_FALSE(TrainerSupports(shape));
  EXPECT_EQ(CheckTrainable(shape).message(),
            "hidden_act: expected gelu, gelu_new, relu, silu or tanh, got 'softplus'");
  shape.hidden_act = "gelu";
  shape.conv_kernel_size = 3;
  shape.conv_act = "none";
  EXPECT_EQ(CheckTrainable(shape).message(),
            "conv_act: expected gelu, gelu_new, relu, silu or tanh, got 'none'");
  shape.family = "t5";
  EXPECT_FALSE(TrainerSupports(shape));
  EXPECT_EQ(CheckTrainable(shape).message(),
            "model_type: expected one of bert, roberta, xlm-roberta, camembert, deberta-v2, "
            "distilbert, electra, gpt2, llama, qwen2; got 't5'");
}

TEST(CheckShape, NamesTheKeyOfTheFormItCameIn) {
  ModelShape shape = *KnownModelShape("meta-llama/Llama-3.2-1B");
  shape.num_key_value_heads = 5;
  EXPECT_EQ(CheckShape(shape, {.num_heads = "n_heads"}).message(),
            "num_key_value_heads: expected a divisor of n_heads 32, got 5");
  shape.num_key_value_heads = 64;
  EXPECT_EQ(CheckShape(shape, {}).message(),
            "num_key_value_heads: expected an integer in [0, 32], got 64");
  shape = *KnownModelShape("microsoft/deberta-v3-base");
  shape.relative.span = -1;
  EXPECT_EQ(CheckShape(shape, {}).message(),
            "position_buckets or max_relative_positions: expected an integer in [0, 1048576], got "
            "-1");
  shape = *KnownModelShape("gpt2");
  shape.embedding_dropout = 1.0;
  EXPECT_EQ(CheckShape(shape, {}).message(),
            "embedding_dropout: expected a number in [0, 1), got 1");
}

TEST(ModelShape, WhatIsAsUsualIsDerived) {
  const ModelShape llama = *KnownModelShape("meta-llama/Llama-3.1-8B");
  EXPECT_EQ(llama.KeyValueHeads(), 8);
  EXPECT_EQ(llama.HeadSize(), 128);
  EXPECT_EQ(llama.EmbeddingSize(), 4096);
  EXPECT_EQ(KnownModelShape("gpt2")->KeyValueHeads(), 12);
  EXPECT_EQ(KnownModelShape("google/electra-small-discriminator")->EmbeddingSize(), 128);
  EXPECT_EQ(ModelShape{}.HeadSize(), 0);
}

}  // namespace
}  // namespace hpo
