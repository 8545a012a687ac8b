#include "worker/trainer/data/training_options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

TEST(ReadTrainingOptions, DefaultsHoldWhereNothingIsGiven) {
  const auto options = ReadTrainingOptions({}, 17);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->learning_rate, 5e-5);
  EXPECT_EQ(options->weight_decay, 0.01);
  EXPECT_EQ(options->config.EffectiveBatch(), 8);
  EXPECT_EQ(options->seed, 17u);
  EXPECT_FALSE(options->config.dropout.has_value());
  EXPECT_FALSE(options->config.head_dropout.has_value());
  EXPECT_EQ(options->class_weights, ClassWeightSpec{});
  EXPECT_FALSE(options->config.weighs_classes);
  EXPECT_FALSE(options->config.smooths_labels);
}

TEST(ReadTrainingOptions, EveryParameterIsRead) {
  const auto options = ReadTrainingOptions({{"data.subset", 0.2},
                                            {"head.dropout", 0.3},
                                            {"head.layers", int64_t{1}},
                                            {"head.size_1", int64_t{64}},
                                            {"memory.clear_cache_every", int64_t{100}},
                                            {"memory.loss_rows", int64_t{100}},
                                            {"memory.unpadded", true},
                                            {"model.dropout", 0.0},
                                            {"model.name", std::string("m")},
                                            {"seed", int64_t{5}},
                                            {"tok.max_length", int64_t{256}},
                                            {"train.batch_size", int64_t{4}},
                                            {"train.beta1", 0.8},
                                            {"train.beta2", 0.9},
                                            {"train.class_weights", std::string("balanced")},
                                            {"train.early_stopping", int64_t{3}},
                                            {"train.eps", 1e-6},
                                            {"train.eval_batch_multiplier", int64_t{2}},
                                            {"train.grad_accum", int64_t{3}},
                                            {"train.group_by_length", true},
                                            {"train.label_smoothing", 0.1},
                                            {"train.lr", int64_t{1}},
                                            {"train.max_grad_norm", 0.5},
                                            {"train.momentum", 0.0},
                                            {"train.optimizer", std::string("adafactor")},
                                            {"train.warmup_ratio", 0.0},
                                            {"train.weight_decay", 0.2}},
                                           17);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->config.head_dropout, 0.3);
  EXPECT_EQ(options->config.head_sizes[0], 64);
  EXPECT_EQ(options->config.dropout, 0.0);
  EXPECT_EQ(options->seed, 5u);
  EXPECT_EQ(options->data_subset, 0.2);
  EXPECT_EQ(options->early_stopping, 3);
  EXPECT_TRUE(options->config.group_by_length);
  EXPECT_EQ(options->class_weights.kind, ClassWeightSpec::Kind::kBalanced);
  EXPECT_EQ(options->label_smoothing, 0.1);
  EXPECT_TRUE(options->config.weighs_classes);
  EXPECT_TRUE(options->config.smooths_labels);
  EXPECT_EQ(options->config.loss_rows, 100);
  EXPECT_TRUE(options->config.unpadded);
  EXPECT_EQ(options->clear_cache_every, 100);
  EXPECT_EQ(options->config.max_length, 256);
  EXPECT_EQ(options->config.EffectiveBatch(), 12);
  EXPECT_EQ(options->config.eval_batch_multiplier, 2);
  EXPECT_EQ(options->beta1, 0.8);
  EXPECT_EQ(options->beta2, 0.9);
  EXPECT_EQ(options->eps, 1e-6);
  EXPECT_EQ(options->learning_rate, 1.0);
  EXPECT_EQ(options->max_grad_norm, 0.5);
  EXPECT_EQ(options->config.momentum, 0.0);
  EXPECT_EQ(options->config.optimizer, memory::OptimizerKind::kAdafactor);
  EXPECT_EQ(options->warmup_ratio, 0.0);
  EXPECT_EQ(options->weight_decay, 0.2);
}

TEST(ReadTrainingOptions, ErrorsNameTheParameterAndTheValue) {
  const std::pair<ParamMap, const char*> cases[] = {
      {{{"train.lrr", 1.0}},
       "train.lrr: hpo-trainer has no such parameter; did you mean 'train.lr'?"},
      {{{"plutonium", 1.0}}, "(hpo-trainer --list-parameters lists them)"},
      {{{"memory.offload_optimizer", true}}, "not offered; train.optimizer adamw_8bit"},
      {{{"train.lr", std::string("high")}},
       "train.lr: expected a number in [0, inf), got the string \"high\""},
      {{{"train.lr", -1e-5}}, "got -1e-05"},
      {{{"model.dropout", 1.0}}, "model.dropout: expected a number in [0, 1), got 1"},
      {{{"train.warmup_ratio", 1.5}}, "train.warmup_ratio"},
      {{{"train.max_grad_norm", 0.0}}, "train.max_grad_norm"},
      {{{"train.batch_size", 2.5}}, "train.batch_size"},
      {{{"train.batch_size", int64_t{0}}}, "train.batch_size"},
      {{{"data.subset", 0.0}}, "data.subset: expected a number in"},
      {{{"data.subset", 1.5}}, "data.subset"},
      {{{"train.early_stopping", int64_t{-1}}}, "expected an integer of at least 0, got -1"},
      {{{"train.class_weights", std::string("often")}},
       "train.class_weights: expected none, balanced"},
      {{{"train.group_by_length", int64_t{1}}},
       "train.group_by_length: expected true or false, got 1"},
      {{{"train.group_by_length", std::string("true")}},
       "train.group_by_length: expected true or false, got the string \"true\""},
      {{{"train.label_smoothing", 1.0}}, "train.label_smoothing"},
      {{{"memory.loss_rows", int64_t{-1}}}, "memory.loss_rows: expected an integer of at least 0"},
      {{{"seed", int64_t{-1}}}, "seed: expected an integer of at least 0, got -1"},
      {{{"seed", 1.5}}, "seed: expected an integer"},
      {{{"head.layers", int64_t{4}}}, "head.layers"},
      {{{"head.layers", int64_t{1}}}, "head.size_1"},
  };
  for (const auto& [params, message] : cases) {
    SCOPED_TRACE(message);
    const auto options = ReadTrainingOptions(params, 0);
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(message));
  }
}

TEST(DescribeParameters, ListsEveryNameThatIsRead) {
  const std::string text = DescribeParameters();
  for (const char* name : {"head.size_3", "train.lr", "tok.max_length", "seed", "model.dropout"}) {
    EXPECT_THAT(text, HasSubstr(std::string(name) + " ")) << name;
  }
}

}  // namespace
}  // namespace hpo::trainer
