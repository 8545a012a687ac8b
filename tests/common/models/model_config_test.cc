#include "common/models/model_config.h"

#include "common/study/model_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"

namespace hpo {
namespace {

constexpr char kBertBase[] = R"({
  "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
  "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02,
  "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
  "model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
  "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": 30522})";

TEST(ParseModelConfig, ReadsBert) {
  const auto shape = ParseModelConfig(kBertBase, "bert/config.json");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(*shape, *KnownModelShape("bert-base-uncased"));
  EXPECT_TRUE(TrainerSupports(*shape));
}

TEST(ParseModelConfig, CountsThePositionsThatRobertaCanUse) {
  nlohmann::json config = nlohmann::json::parse(kBertBase);
  config["model_type"] = "roberta";
  config["vocab_size"] = 50265;
  config["max_position_embeddings"] = 514;
  config["type_vocab_size"] = 1;
  config["pad_token_id"] = 1;
  config["layer_norm_eps"] = 1e-5;
  const auto shape = ParseModelConfig(config.dump(), "roberta/config.json");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->max_positions, 512);
  EXPECT_EQ(*shape, *KnownModelShape("roberta-base"));
  EXPECT_TRUE(TrainerSupports(*shape));
}

TEST(ParseModelConfig, ReadsDebertaWithoutTokenTypes) {
  nlohmann::json config = nlohmann::json::parse(kBertBase);
  config["model_type"] = "deberta-v2";
  config["vocab_size"] = 128100;
  config["type_vocab_size"] = 0;
  config["layer_norm_eps"] = 1e-7;
  config.update(nlohmann::json::parse(R"({
      "relative_attention": true, "position_buckets": 256, "max_relative_positions": -1,
      "norm_rel_ebd": "layer_norm", "share_att_key": true, "pos_att_type": "p2c|c2p",
      "position_biased_input": false})"));
  const auto shape = ParseModelConfig(config.dump(), "deberta/config.json");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(*shape, *KnownModelShape("microsoft/deberta-v3-base"));
  EXPECT_TRUE(TrainerSupports(*shape));
}

TEST(ParseModelConfig, ReadsRotaryPositionsOldAndNew) {
  nlohmann::json config = nlohmann::json::parse(R"({
      "model_type": "llama", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2,
      "num_attention_heads": 4, "intermediate_size": 48, "max_position_embeddings": 64})");
  const auto parse = [&config] { return ParseModelConfig(config.dump(), "llama/config.json"); };
  ASSERT_TRUE(parse().ok()) << parse().status();
  EXPECT_EQ(parse()->rope, RopeScaling{});
  EXPECT_EQ(parse()->rope_theta, 10000.0);
  const nlohmann::json stretched = {{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 16}};
  const RopeScaling expected = {
      .factor = 8.0, .low_frequency = 1.0, .high_frequency = 4.0, .original_positions = 16};
  config["rope_theta"] = 500000.0;
  config["rope_scaling"] = stretched;
  EXPECT_EQ(parse()->rope, expected);
  EXPECT_EQ(parse()->rope_theta, 500000.0);
  config.erase("rope_scaling");
  config.erase("rope_theta");
  config["rope_parameters"] = stretched;
  config["rope_parameters"]["rope_theta"] = 1e6;
  EXPECT_EQ(parse()->rope, expected);
  EXPECT_EQ(parse()->rope_theta, 1e6);
  config["rope_parameters"] = {{"type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(parse()->rope, RopeScaling{.factor = 2.0});
  config["rope_parameters"] = {{"rope_type", "yarn"}, {"factor", 2.0}};
  EXPECT_EQ(parse().status().message(),
            "llama/config.json: rope_parameters: rope_type: expected default, linear or llama3, "
            "got yarn");
  config.erase("rope_parameters");
  config["use_sliding_window"] = true;
  EXPECT_EQ(parse().status().message(),
            "llama/config.json: use_sliding_window: expected false, got true");
}

TEST(ParseModelConfig, ReadsWhereDebertasBucketsEndAndItsConvolution) {
  nlohmann::json config = nlohmann::json::parse(kBertBase);
  config.update({{"model_type", "deberta-v2"},
                 {"relative_attention", true},
                 {"position_buckets", 64},
                 {"max_relative_positions", 128},
                 {"conv_kernel_size", 3},
                 {"conv_act", "gelu"}});
  const auto shape = ParseModelConfig(config.dump(), "deberta/config.json");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->relative.span, 64);
  EXPECT_EQ(shape->relative.farthest, 128);
  EXPECT_EQ(shape->conv_act, "gelu");
}

TEST(ParseModelConfig, ErrorsNameFileKeyAndValue) {
  const std::tuple<const char*, nlohmann::json, const char*> cases[] = {
      {"model_type", nullptr, "m/config.json: model_type: expected a string, got null"},
      {"hidden_size", "768",
       "m/config.json: hidden_size: expected an integer, got the string \"768\""},
      {"hidden_size", 0, "m/config.json: hidden_size: expected an integer in [1, 131072], got 0"},
      {"hidden_size", 1 << 20, "m/config.json: hidden_size: expected an integer in [1, 131072]"},
      {"num_hidden_layers", -1, "m/config.json: num_hidden_layers: expected an integer in"},
      {"num_attention_heads", 7,
       "m/config.json: num_attention_heads: expected a divisor of hidden_size 768, got 7"},
      {"max_position_embeddings", 1.5,
       "m/config.json: max_position_embeddings: expected an integer"},
      {"type_vocab_size", 0, "m/config.json: type_vocab_size: expected an integer in [1,"},
      {"pad_token_id", 30522, "m/config.json: pad_token_id: expected an integer in [0, 30521]"},
      {"hidden_dropout_prob", 1.0,
       "m/config.json: hidden_dropout_prob: expected a number in [0, 1)"},
      {"layer_norm_eps", 0.0, "m/config.json: layer_norm_eps: expected a number in (0, 1), got 0"},
      {"position_embedding_type", "relative_key",
       "m/config.json: position_embedding_type: expected absolute, got relative_key"},
  };
  for (const auto& [key, value, expected] : cases) {
    SCOPED_TRACE(expected);
    nlohmann::json config = nlohmann::json::parse(kBertBase);
    config[key] = value;
    const auto shape = ParseModelConfig(config.dump(), "m/config.json");
    ASSERT_FALSE(shape.ok());
    EXPECT_EQ(shape.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(shape.status().message()), ::testing::StartsWith(expected));
  }
  EXPECT_THAT(std::string(ParseModelConfig("{", "m/config.json").status().message()),
              ::testing::StartsWith("m/config.json: expected JSON"));
  nlohmann::json config = nlohmann::json::parse(kBertBase);
  config.erase("vocab_size");
  EXPECT_EQ(ParseModelConfig(config.dump(), "m/config.json").status().message(),
            "m/config.json: vocab_size: missing");
}

TEST(ParseModelConfig, AMissingTypeIsNamedByTheArchitecture) {
  const std::pair<nlohmann::json, const char*> cases[] = {
      {nlohmann::json::array({"BertForMaskedLM"}),
       R"(got none; its architecture is BertForMaskedLM: add "model_type": "bert")"},
      {nlohmann::json::array({"DistilBertModel"}), R"(add "model_type": "distilbert")"},
      {nlohmann::json::array({"XLMRobertaForTokenClassification"}),
       R"("model_type": "xlm-roberta")"},
      {nlohmann::json::array({"T5Model"}),
       R"(add the one of its family, such as "model_type": "bert")"},
      {nullptr, R"(add the one of its family, such as "model_type": "bert")"},
  };
  for (const auto& [architectures, expected] : cases) {
    nlohmann::json config = nlohmann::json::parse(kBertBase);
    config.erase("model_type");
    config["architectures"] = architectures;
    const auto shape = ParseModelConfig(config.dump(), "m/config.json");
    EXPECT_THAT(std::string(shape.status().message()),
                ::testing::StartsWith("m/config.json: model_type: expected the name of the model's "
                                      "family, got none; "));
    EXPECT_THAT(std::string(shape.status().message()), ::testing::HasSubstr(expected));
  }
}

TEST(ParseModelConfig, OfAnUnknownTypeKeepsTheNameOnly) {
  const auto shape = ParseModelConfig(R"({"model_type": "t5", "d_model": -3})", "m/config.json");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(*shape, ModelShape{.family = "t5"});
  EXPECT_THAT(std::string(CheckKnownFamily(*shape).message()), ::testing::EndsWith("got 't5'"));
}

// One model of each family, with a value that no model has, or that nothing here can count.
TEST(ParseModelConfig, ErrorsNameTheFamilysOwnKeys) {
  const nlohmann::json golden = ReadGolden("model_catalog.json");
  const int64_t absurd = int64_t{1} << 40;
  const std::tuple<const char*, const char*, nlohmann::json, const char*> cases[] = {
      {"gpt2", "n_embd", absurd, "n_embd: expected an integer in [1, 131072], got 1099511627776"},
      {"gpt2", "n_embd", INT64_MIN, "n_embd: expected an integer in [1, 131072], got -922"},
      {"gpt2", "n_inner", 0, "n_inner: expected an integer in [1, 1048576], got 0"},
      {"gpt2", "n_head", 7, "n_head: expected a divisor of n_embd 768, got 7"},
      {"gpt2", "n_positions", absurd, "n_positions: expected an integer in [1, 16777216], got 1"},
      {"gpt2", "embd_pdrop", 1.5, "embd_pdrop: expected a number in [0, 1), got 1.5"},
      {"gpt2", "add_cross_attention", true, "add_cross_attention: expected false, got true"},
      {"distilbert-base-uncased", "dim", 0, "dim: expected an integer in [1, 131072], got 0"},
      {"distilbert-base-uncased", "n_layers", -1, "n_layers: expected an integer in [1, 4096]"},
      {"meta-llama/Llama-3.2-1B", "num_key_value_heads", 0,
       "num_key_value_heads: expected an integer of at least 1, got 0"},
      {"meta-llama/Llama-3.2-1B", "num_key_value_heads", 3,
       "num_key_value_heads: expected a divisor of num_attention_heads 32, got 3"},
      {"meta-llama/Llama-3.2-1B", "head_dim", absurd,
       "head_dim: expected an integer in [0, 16384]"},
      {"meta-llama/Llama-3.2-1B", "tie_word_embeddings", "yes",
       "tie_word_embeddings: expected true or false, got the string \"yes\""},
      {"Qwen/Qwen2.5-7B", "rms_norm_eps", 0, "rms_norm_eps: expected a number in (0, 1), got 0"},
      {"roberta-base", "pad_token_id", INT64_MAX,
       "pad_token_id: expected an integer in [0, 50264]"},
      {"roberta-base", "max_position_embeddings", 2,
       "max_position_embeddings: expected an integer in [1, 16777216], got 0"},
      {"microsoft/deberta-v2-xlarge", "conv_groups", 2, "conv_groups: expected 1, got 2"},
      {"microsoft/deberta-v2-xlarge", "conv_kernel_size", absurd,
       "conv_kernel_size: expected an integer in [0, 256]"},
      {"microsoft/deberta-v3-base", "position_buckets", absurd,
       "position_buckets or max_relative_positions: expected an integer in [0, 1048576]"},
      {"microsoft/deberta-v3-base", "pos_att_type", 3,
       "pos_att_type: expected an array of strings, got the integer 3"},
      {"google/electra-small-discriminator", "embedding_size", -1,
       "embedding_size: expected an integer in [0, 131072], got -1"},
  };
  for (const auto& [name, key, value, expected] : cases) {
    SCOPED_TRACE(expected);
    nlohmann::json config = golden["catalog"][name]["config"];
    config[key] = value;
    const absl::Status status = ParseModelConfig(config.dump(), "c").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                ::testing::StartsWith(std::string("c: ") + expected));
  }
}

TEST(ParseModelConfig, NamesTheFirstKeyThatIsMissing) {
  const nlohmann::json golden = ReadGolden("model_catalog.json");
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {"bert-base-uncased", {"vocab_size", "hidden_size", "intermediate_size", "type_vocab_size"}},
      {"distilbert-base-uncased", {"dim", "hidden_dim", "n_heads", "max_position_embeddings"}},
      {"google/electra-base-discriminator", {"embedding_size"}},
      {"gpt2", {"n_embd", "n_layer", "n_head", "n_positions"}},
      {"Qwen/Qwen2.5-0.5B", {"hidden_size", "num_hidden_layers", "intermediate_size"}},
  };
  for (const auto& [name, keys] : cases) {
    for (const char* key : keys) {
      nlohmann::json config = golden["catalog"][name]["config"];
      config.erase(key);
      EXPECT_EQ(ParseModelConfig(config.dump(), "c").status().message(),
                std::string("c: ") + key + ": missing");
    }
  }
}

TEST(ParseModelConfig, AbsentKeysHaveTheLibrarysValues) {
  const nlohmann::json golden = ReadGolden("model_catalog.json");
  nlohmann::json llama = golden["catalog"]["meta-llama/Llama-2-7b-hf"]["config"];
  for (const char* key : {"num_key_value_heads", "tie_word_embeddings", "rms_norm_eps"}) {
    llama.erase(key);
  }
  const auto shape = ParseModelConfig(llama.dump(), "c");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->KeyValueHeads(), 32);
  EXPECT_FALSE(shape->tied_head);
  EXPECT_EQ(shape->layer_norm_eps, 1e-6);
  EXPECT_EQ(shape->stored_type, "float16");

  nlohmann::json gpt2 = golden["catalog"]["gpt2"]["config"];
  for (const char* key :
       {"resid_pdrop", "embd_pdrop", "attn_pdrop", "layer_norm_epsilon", "activation_function"}) {
    gpt2.erase(key);
  }
  EXPECT_EQ(ParseModelConfig(gpt2.dump(), "c").value(), *KnownModelShape("gpt2"));
}

}  // namespace
}  // namespace hpo
