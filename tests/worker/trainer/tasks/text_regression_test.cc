#include "worker/trainer/tasks/text_regression.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/golden_tensors.h"
#include "tests/worker/trainer/tiny_model.h"
#include "worker/trainer/program/run_trial.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

// Three numbers for each row.
class TextRegressionTest : public TinyModelTest {
 protected:
  void SetUp() override {
    TinyModelTest::SetUp();
    for (text::EncodedDataset* data : {&data_.train, &data_.validation}) {
      for (int64_t i = 0; i < 3 * data->num_rows(); ++i) {
        data->numbers.push_back(0.25f * static_cast<float>(i % 7) - 1.0f);
      }
    }
    task_ = std::make_unique<TextRegression>(model_, TaskParts{.data = data_, .max_positions = 64});
    model_->eval();
  }

  torch::Tensor Numbers(const text::EncodedDataset& data, int64_t rows) const {
    return torch::tensor(std::vector<float>(data.numbers.begin(), data.numbers.begin() + 3 * rows))
        .view({rows, 3});
  }
};

TEST_F(TextRegressionTest, GradientsAreThoseOfTorchsMeanHoweverTheBatchIsSplit) {
  const auto batch = ToDevice(text::PadBatch(data_.train, rows_, 64), 3, torch::kCPU);
  const torch::Tensor whole = at::mse_loss(model_->forward(batch.input), Numbers(data_.train, 16));
  whole.backward();
  const Gradients expected = TakeGradients();
  for (const int64_t micro_batch : {16, 5, 1}) {
    SCOPED_TRACE(micro_batch);
    EXPECT_NEAR(Compute({.effective_batch = 16, .micro_batch = micro_batch}), whole.item<double>(),
                1e-6);
    const Gradients split = TakeGradients();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LE(LargestDifference(split[i], expected[i]), 1e-6) << i;
    }
  }
}

TEST_F(TextRegressionTest, MetricsAreThoseOfThePredictions) {
  const Metrics metrics = task_->Evaluate(text::EvaluationBatches(data_.validation, 7));
  EXPECT_TRUE(model_->is_training());
  model_->eval();
  text::BatchRows all(static_cast<size_t>(data_.validation.num_rows()));
  std::iota(all.begin(), all.end(), 0);
  const auto batch = ToDevice(text::PadBatch(data_.validation, all, 64), 3, torch::kCPU);
  const torch::Tensor error =
      model_->forward(batch.input) - Numbers(data_.validation, data_.validation.num_rows());
  EXPECT_NEAR(metrics.at("loss"), error.square().mean().item<double>(), 1e-6);
  EXPECT_NEAR(metrics.at("mae"), error.abs().mean().item<double>(), 1e-6);
  for (const absl::string_view name : MetricsOf(TaskKind::kTextRegression)) {
    EXPECT_EQ(metrics.count(std::string(name)), 1u) << name;
  }
}

// ---- Whole trials ------------------------------------------------------------------------------

class RegressionTrial : public testing::Test {
 protected:
  RegressionTrial() {
    std::string rows;
    for (int i = 0; i < 32; ++i) {
      absl::StrAppend(&rows, R"({"text":"w)", i % 8, " w", i % 5, R"(","valence":)", i % 8,
                      R"(,"arousal":)", 0.5 * (i % 8), R"(,"dominance":1})", "\n");
    }
    job_.task.trainer.task = "text-regression";
    job_.task.trainer.labels = {"valence", "arousal",
                                "dominance"};  // as many as the folder's head has
    job_.task.trainer.train = trial_.Write("numbers.jsonl", rows);
    job_.task.trainer.validation = job_.task.trainer.train;
    job_.task.objective = {.metric = "rmse", .direction = Direction::kMinimize};
    job_.task.params["model.dropout"] = 0.0;
    job_.task.trainer.epochs = 8;
  }

  std::string FailureOf(const TrainerJob& job) {
    const OutcomeMessage message = RunTrial(job, TestDevice(), events_, events_);
    const auto* failed = std::get_if<Failed>(&*message.outcome);
    EXPECT_NE(failed, nullptr);
    EXPECT_TRUE(message.clean);
    return failed == nullptr ? "" : failed->message;
  }

  TinyTrial trial_;
  TrainerJob job_ = trial_.Job();
  RecordingEvents events_;
};

TEST_F(RegressionTrial, LearnsAndWritesAFolderThatSaysRegression) {
  const OutcomeMessage message = RunTrial(job_, TestDevice(), events_, events_);
  ASSERT_TRUE(std::holds_alternative<Completed>(*message.outcome))
      << OutcomeToJson(*message.outcome);
  const auto measured = events_.All<MeasurementMessage>();
  ASSERT_EQ(measured.size(), 8u);
  EXPECT_LT(measured.back().measurement.metrics.at("rmse"),
            0.8 * measured.front().measurement.metrics.at("rmse"));
  const auto config = nlohmann::json::parse(std::ifstream(trial_.Path("out/best/config.json")));
  EXPECT_EQ(config["problem_type"], "regression");
  EXPECT_EQ(config["num_labels"], 3);
  EXPECT_EQ(config["id2label"]["1"], "arousal");
}

TEST_F(RegressionTrial, BadInputIsOneLine) {
  TrainerJob job = job_;
  job.task.objective.metric = "macro_f1";
  EXPECT_THAT(FailureOf(job), HasSubstr("expected loss, mae, pearson or rmse (the metrics of "
                                        "text-regression), got 'macro_f1'"));
  job = job_;
  job.task.trainer.labels = {"valence", "anger", "x"};
  EXPECT_THAT(FailureOf(job),
              HasSubstr("numbers.jsonl:1: expected a field 'anger' of a number, got "));
  job = job_;
  job.task.trainer.train =
      trial_.Write("bad.jsonl",
                   "{\"text\":\"w1\",\"valence\":1,\"arousal\":2,\"dominance\":0}\n"
                   "{\"text\":\"w1\",\"valence\":1e300,\"arousal\":2,\"dominance\":0}\n");
  EXPECT_THAT(FailureOf(job), HasSubstr("bad.jsonl:2: valence: expected a number within float32"));
  job = job_;
  job.task.trainer.train = trial_.Write("empty.jsonl", "");
  EXPECT_THAT(FailureOf(job), HasSubstr("empty.jsonl:1: expected rows, got none"));
  job = job_;
  job.task.params["train.label_smoothing"] = 0.1;
  EXPECT_THAT(FailureOf(job), HasSubstr("train.label_smoothing: expected neither with "
                                        "text-regression, which has no classes"));
}

}  // namespace
}  // namespace hpo::trainer
