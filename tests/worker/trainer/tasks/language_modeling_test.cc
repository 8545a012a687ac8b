// Losses and gradients of language models as transformers has them, and whole trials.
#include "worker/trainer/tasks/language_modeling.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "common/models/model_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/golden_tensors.h"
#include "tests/worker/trainer/synthetic_trial.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/models/files/weight_files.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/program/run_trial.h"
#include "worker/trainer/training/effective_batch.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

class LanguageModelingGolden : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string folder = GoldenPath(std::string("tiny_models/") + GetParam());
    std::ostringstream config;
    config << std::ifstream(folder + "/config.json").rdbuf();
    const auto shape = ParseModelConfig(config.str(), folder);
    ASSERT_TRUE(shape.ok()) << shape.status();
    auto expected = SafetensorsFile::Open(folder + "/expected.safetensors");
    ASSERT_TRUE(expected.ok()) << expected.status();
    expected_ = std::make_unique<SafetensorsFile>(*std::move(expected));
    auto model = MakeLanguageModel(*shape, torch::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    const auto weights = OpenWeights(folder);
    ASSERT_TRUE(weights.ok()) << weights.status();
    ASSERT_TRUE(LoadParameters(*model_, *weights).ok());
    data_.train = data_.validation = RowsOfTheBatch();
    parts_.max_positions = shape->max_positions;
  }

  // Its rows without their padding.
  text::EncodedDataset RowsOfTheBatch() const {
    const torch::Tensor ids = GoldenTensor(*expected_, "input_ids");
    const torch::Tensor lengths = GoldenTensor(*expected_, "attention_mask").sum(1);
    text::EncodedDataset data;
    data.token_offsets = {0};
    for (int64_t row = 0; row < ids.size(0); ++row) {
      for (int64_t i = 0; i < lengths[row].item<int64_t>(); ++i) {
        data.ids.push_back(ids[row][i].item<int32_t>());
        data.type_ids.push_back(0);
      }
      data.token_offsets.push_back(static_cast<int64_t>(data.ids.size()));
    }
    return data;
  }

  TextData data_{.task = TaskKind::kLanguageModeling};
  TaskParts parts_{.data = data_};
  std::shared_ptr<LanguageModel> model_;
  std::unique_ptr<SafetensorsFile> expected_;
  TrainerJob job_;
  RecordingEvents events_;
  StageLog log_{job_, *TestDevice().memory, events_};
};

// Rows of 16, 9 and 13 tokens: a mean over parts of means would be another number.
TEST_P(LanguageModelingGolden, GradientsAgreeHoweverTheBatchAndTheLossAreCut) {
  const double loss = GoldenTensor(*expected_, "loss").item<double>();
  const text::BatchRows rows = {0, 1, 2};
  for (const int64_t loss_rows : {1000, 7, 1}) {
    for (const int64_t micro_batch : {3, 2, 1}) {
      SCOPED_TRACE(testing::Message() << loss_rows << " tokens, " << micro_batch << " rows");
      LanguageModeling task(model_, parts_, loss_rows);
      const EffectiveBatch batch{.rows = rows,
                                 .plan = {.effective_batch = 3, .micro_batch = micro_batch}};
      EXPECT_NEAR(ComputeGradients(task, batch, torch::kCPU, log_), loss, 1e-5);
      for (const auto& item : model_->named_parameters()) {
        EXPECT_LE(
            LargestDifference(item.value().grad(), GoldenTensor(*expected_, "grad." + item.key())),
            1e-4)
            << item.key();
        item.value().mutable_grad().reset();
      }
    }
  }
}

TEST_P(LanguageModelingGolden, PerplexityIsThatOfTheReferencesLoss) {
  const double loss = GoldenTensor(*expected_, "loss").item<double>();
  LanguageModeling task(model_, parts_, /*loss_rows=*/5);
  for (const int64_t rows : {1, 2, 3}) {
    const Metrics metrics = task.Evaluate(text::EvaluationBatches(data_.validation, rows));
    EXPECT_NEAR(metrics.at("loss"), loss, 1e-5);
    EXPECT_NEAR(metrics.at("perplexity"), std::exp(loss), 1e-3);
    EXPECT_EQ(metrics.size(), MetricsOf(TaskKind::kLanguageModeling).size());
  }
}

// As bf16 does, against float32 with a tolerance of 8 bits.
TEST_P(LanguageModelingGolden, RunsInBfloat16) {
  LanguageModeling task(model_, parts_, /*loss_rows=*/5);
  task.SetExecution({.checkpoint_every = 1, .precision = Precision::kBfloat16});
  const text::BatchRows rows = {0, 1, 2};
  const EffectiveBatch batch{.rows = rows, .plan = {.effective_batch = 3, .micro_batch = 2}};
  const double loss = GoldenTensor(*expected_, "loss").item<double>();
  const double in_16_bits = ComputeGradients(task, batch, torch::kCPU, log_);
  EXPECT_NE(in_16_bits, loss);
  EXPECT_NEAR(in_16_bits, loss, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Models, LanguageModelingGolden,
                         testing::Values("gpt2-lm", "llama-3", "qwen2-lm"), ModelTestName);

// ---- Whole trials ------------------------------------------------------------------------------

SyntheticTrial Texts(const char* family) {
  SyntheticTrial trial;
  trial.family = family;
  trial.task = "language-modeling";
  trial.vocabulary = 60;
  trial.hidden = 32;
  trial.intermediate = 64;
  trial.batch_size = trial.micro_batch = 4;
  trial.train_lengths = {20, 9, 33, 12, 16, 25, 30, 7};
  trial.validation_lengths = {20, 31, 8};
  trial.epochs = 6;
  trial.params = {{"train.lr", 5e-3}, {"model.dropout", 0.0}};
  return trial;
}

Failed FailureOf(const TrainerJob& job) {
  RecordingEvents events;
  const OutcomeMessage message = RunTrial(job, TestDevice(), events, events);
  EXPECT_TRUE(message.outcome.has_value() && std::holds_alternative<Failed>(*message.outcome));
  EXPECT_TRUE(message.clean);
  const auto* failed = std::get_if<Failed>(&*message.outcome);
  return failed == nullptr ? Failed{} : *failed;
}

TEST(LanguageModelingTrial, LearnsAndWritesALanguageModel) {
  for (const auto& [family, architecture] :
       {std::pair("gpt2", "GPT2LMHeadModel"), std::pair("qwen2", "Qwen2ForCausalLM")}) {
    const SyntheticFolder folder(Texts(family), testing::TempDir());
    const TrainerJob job = folder.Job();
    RecordingEvents events;
    const OutcomeMessage message = RunTrial(job, TestDevice(), events, events);
    ASSERT_TRUE(std::holds_alternative<Completed>(*message.outcome))
        << OutcomeToJson(*message.outcome);
    const auto measured = events.All<MeasurementMessage>();
    EXPECT_LT(measured.back().measurement.metrics.at("perplexity"),
              0.8 * measured.front().measurement.metrics.at("perplexity"));
    const auto config = nlohmann::json::parse(std::ifstream(job.output_dir + "/best/config.json"));
    EXPECT_EQ(config["architectures"], nlohmann::json({architecture}));
    EXPECT_FALSE(config.contains("problem_type"));
    EXPECT_FALSE(config.contains("id2label"));
  }
}

// Adapters on a base of fewer bits learn too, and admission counts what they need.
TEST(LanguageModelingTrial, LearnsUnderALimitOnAStoredBase) {
  for (const bool tied : {false, true}) {
    for (const char* base : {"fp32", "bf16", "nf4"}) {
      SCOPED_TRACE(absl::StrCat(tied ? "tied " : "", base));
      SyntheticTrial trial = Texts("qwen2");
      trial.more_config = {{"tie_word_embeddings", tied}};
      trial.params["lora.rank"] = int64_t{4};
      trial.params["lora.targets"] = std::string("all-linear");
      trial.params["lora.base"] = std::string(base);
      trial.params["train.lr"] = 2e-2;
      const SyntheticFolder folder(trial, testing::TempDir());
      TrainerJob job = folder.Job();
      job.task.admission = true;
      job.task.limit = MiB(64);
      RecordingEvents events;
      const OutcomeMessage message = RunTrial(job, TestDevice(), events, events);
      ASSERT_TRUE(std::holds_alternative<Completed>(*message.outcome))
          << OutcomeToJson(*message.outcome);
      EXPECT_EQ(message.memory.num_ooms, 0);
      const auto measured = events.All<MeasurementMessage>();
      EXPECT_LT(measured.back().measurement.metrics.at("loss"),
                measured.front().measurement.metrics.at("loss"));
    }
  }
}

TEST(LanguageModelingTrial, BadInputIsOneLine) {
  SyntheticTrial trial = Texts("gpt2");
  const SyntheticFolder folder(trial, testing::TempDir());
  TrainerJob job = folder.Job();
  job.task.objective.metric = "accuracy";
  EXPECT_THAT(FailureOf(job).message,
              HasSubstr("expected loss or perplexity (the metrics of language-modeling)"));
  const TinyTrial tiny;
  job = folder.Job();
  job.task.trainer.train = tiny.Write("pairs.jsonl", "{\"text\":\"w1 w2\",\"pair\":\"w3\"}\n");
  job.task.trainer.validation = job.task.trainer.train;
  EXPECT_THAT(FailureOf(job).message, HasSubstr("pair: expected texts alone, got pairs"));
  trial.family = "bert";
  const SyntheticFolder encoder(trial, testing::TempDir());
  const Failed failed = FailureOf(encoder.Job());
  EXPECT_THAT(failed.message, HasSubstr("expected gpt2, llama or qwen2 for language modelling"));
}

// GPT-2's own tokenizer adds no tokens around a text.
TEST(LanguageModelingTrial, ATextOfOneTokenIsNamedWithItsLine) {
  const SyntheticFolder folder(Texts("gpt2"), testing::TempDir());
  TrainerJob job = folder.Job();
  std::ofstream(job.model_path + "/vocab.json") << R"({"a":0,"b":1,"\u0120":2,"<|endoftext|>":3})";
  std::ofstream(job.model_path + "/merges.txt") << "#version: 0.2\n";
  std::ofstream(job.model_path + "/tokenizer_config.json")
      << R"({"tokenizer_class":"GPT2Tokenizer"})";
  const TinyTrial tiny;
  job.task.trainer.validation = tiny.Write("v.jsonl", "{\"text\":\"a b\"}\n");
  job.task.trainer.train = tiny.Write("t.jsonl", "{\"text\":\"a b\"}\n\n{\"text\":\"a\"}\n");
  const Failed failed = FailureOf(job);
  EXPECT_EQ(failed.failure_class, FailureClass::kBadData);
  EXPECT_THAT(failed.message, HasSubstr("t.jsonl:3: text: expected at least 2 tokens to predict "
                                        "one from another, got 1"));
}

}  // namespace
}  // namespace hpo::trainer
