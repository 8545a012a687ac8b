#include "common/model_spec.h"

#include "common/model_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
  EXPECT_EQ(NumParameters(*shape), 109'482'240);
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
  EXPECT_FALSE(TrainerSupports(*shape));
}

TEST(ParseModelConfig, ReadsDebertaWithoutTokenTypes) {
  nlohmann::json config = nlohmann::json::parse(kBertBase);
  config["model_type"] = "deberta-v2";
  config["vocab_size"] = 128100;
  config["type_vocab_size"] = 0;
  config["layer_norm_eps"] = 1e-7;
  const auto shape = ParseModelConfig(config.dump(), "deberta/config.json");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(*shape, *KnownModelShape("microsoft/deberta-v3-base"));
  EXPECT_FALSE(TrainerSupports(*shape));
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

// The sums that `sum(p.numel() for p in AutoModel.from_pretrained(name).parameters())` gives.
TEST(NumParameters, AgreesWithThePublishedModels) {
  const std::tuple<const char*, int64_t, bool> cases[] = {
      {"bert-base-uncased", 109'482'240, false},
      {"bert-large-uncased", 335'141'888, true},
      {"roberta-base", 124'645'632, false},
      {"roberta-large", 355'359'744, true},
      {"microsoft/deberta-v3-base", 183'831'552, false},
      {"microsoft/deberta-v3-large", 434'012'160, true},
      {"xlm-roberta-base", 278'043'648, true},
      {"all-minilm-l6-v2", 22'713'216, false},
  };
  for (const auto& [name, parameters, heavy] : cases) {
    SCOPED_TRACE(name);
    const std::optional<ModelShape> shape = KnownModelShape(name);
    ASSERT_TRUE(shape.has_value());
    EXPECT_EQ(NumParameters(*shape), parameters);
    EXPECT_EQ(NumParameters(*shape) >= kHeavyParameters, heavy);
  }
  EXPECT_EQ(KnownModelShape("gpt2"), std::nullopt);
}

TEST(ModelShapeJson, KeepsEveryField) {
  ModelShape shape = *KnownModelShape("roberta-large");
  shape.hidden_dropout = 0.25;
  shape.attention_dropout = 0.0;
  shape.initializer_range = 0.5;
  shape.hidden_act = "relu";
  const auto again = ModelShapeFromJson(nlohmann::json::parse(ModelShapeToJson(shape).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, shape);
  nlohmann::json json = ModelShapeToJson(shape);
  json["num_heads"] = 7;
  EXPECT_EQ(ModelShapeFromJson(json).status().message(),
            "num_heads: expected a divisor of hidden_size 1024, got 7");
}

TEST(ModelFacts, ClassComesFromSizeOrFromTheList) {
  SearchSpace space;
  const ModelShape base = *KnownModelShape("bert-base-uncased");
  AddModelFacts(space, "a", base, /*listed_heavy=*/false);
  AddModelFacts(space, "b", base, /*listed_heavy=*/true);
  AddModelFacts(space, "c", *KnownModelShape("roberta-large"), /*listed_heavy=*/false);
  AddModelFacts(space, "d", /*listed_heavy=*/true);
  AddModelFacts(space, "e", /*listed_heavy=*/false);
  EXPECT_EQ(FormatParams(space.model_facts.at("a")), "model.class=base model.family=bert");
  EXPECT_EQ(FormatParams(space.model_facts.at("b")), "model.class=heavy model.family=bert");
  EXPECT_EQ(FormatParams(space.model_facts.at("c")), "model.class=heavy model.family=roberta");
  EXPECT_EQ(FormatParams(space.model_facts.at("d")), "model.class=heavy");
  EXPECT_EQ(space.model_facts.count("e"), 0u);
  // What a worker registers beats what was there.
  AddModelFacts(space, "c", base, /*listed_heavy=*/false);
  EXPECT_EQ(FormatParams(space.model_facts.at("c")), "model.class=base model.family=bert");
}

}  // namespace
}  // namespace hpo
