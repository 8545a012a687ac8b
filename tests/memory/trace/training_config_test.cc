#include <string>

#include "common/study/model_catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "memory/need/memory_estimate.h"

namespace hpo::memory {
namespace {

using ::testing::HasSubstr;

TEST(TrainingConfigOf, ReadsEveryParameter) {
  const ParamMap params = {{"train.batch_size", int64_t{12}},
                           {"train.grad_accum", int64_t{3}},
                           {"tok.max_length", int64_t{256}},
                           {"train.eval_batch_multiplier", int64_t{2}},
                           {"head.layers", int64_t{2}},
                           {"head.size_1", int64_t{512}},
                           {"head.size_2", int64_t{64}},
                           {"model.dropout", 0.25},
                           {"train.optimizer", std::string("sgd")},
                           {"train.momentum", 0.5},
                           {"train.precision", std::string("bf16")},
                           {"memory.checkpoint_every", int64_t{2}},
                           {"memory.unpadded", true},
                           {"train.group_by_length", true},
                           {"model.freeze_embeddings", true},
                           {"model.freeze_layers", int64_t{3}},
                           {"lora.rank", int64_t{16}},
                           {"lora.base", std::string("nf4")},
                           {"lora.alpha", int64_t{32}},
                           {"lora.dropout", 0.05},
                           {"lora.targets", std::string("query, value")},
                           {"train.lr", 3e-5}};
  const auto config = TrainingConfigOf(params, TrainerSpec{});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, (TrainingConfig{.batch_size = 12,
                                     .grad_accum = 3,
                                     .max_length = 256,
                                     .eval_batch_multiplier = 2,
                                     .head_layers = 2,
                                     .head_sizes = {512, 64, 0},
                                     .dropout = 0.25,
                                     .optimizer = OptimizerKind::kSgd,
                                     .momentum = 0.5,
                                     .precision = Precision::kBfloat16,
                                     .checkpoint_every = 2,
                                     .freezing = {.embeddings = true, .layers = 3},
                                     .lora = LoraOptions{.rank = 16,
                                                         .alpha = 32.0,
                                                         .dropout = 0.05,
                                                         .targets = {"query", "value"},
                                                         .base = FrozenType::kNf4},
                                     .unpadded = true,
                                     .group_by_length = true}));
  EXPECT_EQ(config->EffectiveBatch(), 36);
}

// So that a rank of 0 may be a choice among others.
TEST(TrainingConfigOf, HasNoAdaptersOfRankZero) {
  const auto config = TrainingConfigOf(
      {{"lora.rank", int64_t{0}}, {"lora.alpha", 8.0}, {"lora.targets", std::string("query")}},
      TrainerSpec{});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, TrainingConfig{});
}

TEST(CheckTrainedParts, TakesFrozenPartsOrAdaptersThatTheModelHas) {
  const ModelShape bert = *KnownModelShape("bert-base-uncased");
  const LoraOptions adapters{.rank = 8, .targets = {"query"}};
  EXPECT_TRUE(CheckTrainedParts({.freezing = {.embeddings = true, .layers = 12}}, bert).ok());
  EXPECT_TRUE(CheckTrainedParts({.lora = adapters}, bert).ok());
  const std::pair<TrainingConfig, const char*> cases[] = {
      {{.freezing = {.layers = 13}}, "expected at most the 12 layers of the model, got 13"},
      {{.freezing = {.embeddings = true}, .lora = adapters}, "expected neither with lora.rank"},
      {{.lora = LoraOptions{.rank = 8, .targets = {"q_proj"}}},
       "lora.targets: expected ends of names of linear layers of bert (dense, key, query, value) "
       "or all-linear, got 'q_proj'"},
  };
  for (const auto& [config, expected] : cases) {
    const absl::Status status = CheckTrainedParts(config, bert);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(expected));
  }
}

TEST(CheckUnpadded, NamesWhatRunsWithoutPadding) {
  const TrainingConfig unpadded{.unpadded = true};
  const auto check = [](const TrainingConfig& config, const char* family, TaskKind task) {
    ModelShape shape;
    shape.family = family;
    return CheckUnpadded(config, shape, task);
  };
  for (const char* family :
       {"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert"}) {
    EXPECT_TRUE(check(unpadded, family, TaskKind::kTextClassification).ok()) << family;
    EXPECT_TRUE(check(unpadded, family, TaskKind::kTextRegression).ok()) << family;
    const absl::Status refused = check(unpadded, family, TaskKind::kMultiQuery);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("memory.unpadded: expected text-classification or text-regression, got "
                          "multi-query"));
  }
  for (const char* family : {"deberta-v2", "gpt2", "llama", "qwen2", "t5"}) {
    const absl::Status refused = check(unpadded, family, TaskKind::kTextClassification);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("memory.unpadded: expected a model of bert, roberta"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(family));
    EXPECT_TRUE(check({}, family, TaskKind::kTextClassification).ok());
  }
}

TEST(TrainingConfigOf, ParametersBeatTheStudysDefaultsWhichBeatOurs) {
  TrainerSpec trainer;
  trainer.defaults = {{"train.batch_size", int64_t{32}}, {"train.grad_accum", int64_t{4}}};
  const auto config = TrainingConfigOf({{"train.batch_size", int64_t{2}}}, trainer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, (TrainingConfig{.batch_size = 2, .grad_accum = 4}));
}

TEST(TrainingConfigOf, NamesTheBadParameter) {
  const std::pair<ParamMap, const char*> cases[] = {
      {{{"train.batch_size", 8.0}}, "train.batch_size: expected an integer of at least 1, got 8"},
      {{{"train.batch_size", std::string("8")}}, "train.batch_size: expected an integer"},
      {{{"train.batch_size", int64_t{0}}}, "train.batch_size: expected an integer of at least 1"},
      {{{"train.grad_accum", int64_t{-1}}}, "train.grad_accum: expected an integer of at least 1"},
      {{{"tok.max_length", true}}, "tok.max_length: expected an integer"},
      {{{"train.eval_batch_multiplier", int64_t{0}}}, "train.eval_batch_multiplier"},
      {{{"head.layers", int64_t{4}}}, "head.layers: expected at most 3, got 4"},
      {{{"head.layers", int64_t{1}}}, "head.size_1: expected a size because head.layers is 1"},
      {{{"model.dropout", 1.0}}, "model.dropout: expected a number in [0, 1), got 1"},
      {{{"model.dropout", std::string("none")}}, "model.dropout"},
      {{{"train.optimizer", std::string("lion")}},
       "train.optimizer: expected adamw, adamw_8bit, adafactor or sgd, got 'lion'"},
      {{{"train.optimizer", int64_t{8}}}, "adafactor or sgd, got '8'"},
      {{{"train.precision", std::string("int8")}},
       "train.precision: expected fp32, tf32, bf16 or fp16, got 'int8'"},
      {{{"memory.unpadded", int64_t{1}}}, "memory.unpadded: expected true or false, got 1"},
      {{{"memory.unpadded", std::string("true")}},
       "memory.unpadded: expected true or false, got the string \"true\""},
      {{{"memory.checkpoint_every", int64_t{-1}}},
       "memory.checkpoint_every: expected an integer of at least 0, got -1"},
      {{{"model.freeze_embeddings", int64_t{1}}},
       "model.freeze_embeddings: expected true or false, got 1"},
      {{{"model.freeze_layers", int64_t{-1}}},
       "model.freeze_layers: expected an integer of at least 0, got -1"},
      {{{"lora.rank", 8.5}}, "lora.rank: expected an integer of at least 0, got 8.5"},
      {{{"lora.base", std::string("int4")}}, "lora.base: expected fp32, bf16 or nf4, got 'int4'"},
      {{{"lora.alpha", 0.0}}, "lora.alpha: expected a number above 0, got 0"},
      {{{"lora.dropout", 1.0}}, "lora.dropout: expected a number in [0, 1), got 1"},
      {{{"lora.targets", int64_t{3}}}, "lora.targets: expected a text, got 3"},
      {{{"train.momentum", 1.0}}, "train.momentum: expected a number in [0, 1), got 1"},
  };
  for (const auto& [params, expected] : cases) {
    SCOPED_TRACE(FormatParams(params));
    const auto config = TrainingConfigOf(params, TrainerSpec{});
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(expected));
  }
}

TEST(TrainingConfig, EffectiveBatchDoesNotOverflow) {
  EXPECT_EQ((TrainingConfig{.batch_size = int64_t{1} << 40, .grad_accum = int64_t{1} << 40})
                .EffectiveBatch(),
            INT64_MAX);
}

}  // namespace
}  // namespace hpo::memory
