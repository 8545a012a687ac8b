// The user's case: texts of a varying number of aspects, laid out in every way with equal results.
#include "worker/trainer/tasks/multi_query.h"

#include <cmath>
#include <fstream>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/golden_tensors.h"
#include "tests/worker/trainer/same_events.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/program/run_trial.h"
#include "worker/trainer/training/effective_batch.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

// Twelve texts of 1 to 5 aspects, one of 9.
std::string Rows() {
  std::string rows;
  for (int row = 0; row < 13; ++row) {
    const int aspects = row == 7 ? 9 : 1 + row * row % 5;
    absl::StrAppend(&rows, "{\"Text\":\"w", row, " w", 2 * row, " w", row % 4,
                    "\",\"Quadruplet\":[");
    for (int i = 0; i < aspects; ++i) {
      absl::StrAppend(&rows, i > 0 ? "," : "", R"({"Aspect":"w)", 30 + i, R"(","Category":")",
                      i % 2 == 0 ? "food" : "place", R"(","VA":")", 1 + i % 3, "#", 0.5 * row,
                      "\"}");
    }
    absl::StrAppend(&rows, "]}\n");
  }
  return rows;
}

class MultiQueryTest : public testing::Test {
 protected:
  void SetUp() override {
    job_.task.trainer.task = "multi-query";
    job_.task.trainer.labels.clear();
    job_.task.trainer.train = job_.task.trainer.validation = trial_.Write("aspects.jsonl", Rows());
    job_.task.objective = {.metric = "va_rmse", .direction = Direction::kMinimize};
    job_.task.trainer.model_init = "random";
    job_.task.params["model.dropout"] = 0.0;
    const auto options = ReadTrainingOptions(job_.task.params, job_.task.seed);
    ASSERT_TRUE(options.ok()) << options.status();
    const auto folder = OpenModelFolder(job_, *options);
    ASSERT_TRUE(folder.ok()) << folder.status();
    auto data = LoadTextData(job_, *options, *folder);
    ASSERT_TRUE(data.ok()) << data.status();
    data_ = *std::move(data);
    auto model = MakeTextClassifier(folder->shape, {.num_labels = 4, .dropout = 0.0}, torch::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    InitializeParameters(*model_, ParameterNames(*model_), 0.02, 0, 1);
    task_ = std::make_unique<MultiQuery>(model_, TaskParts{.data = data_, .max_positions = 64});
  }

  // The mean over the aspects of these texts, query by query.
  torch::Tensor PlainLoss(const text::BatchRows& texts, const LabelLoss& loss = {}) {
    const torch::Tensor weights =
        loss.weights.empty() ? torch::Tensor() : torch::tensor(loss.weights);
    const text::QuerySet& set = *data_.train_queries;
    torch::Tensor sum = torch::zeros({});
    double aspects = 0.0;
    for (const int64_t text : texts) {
      for (int64_t i = 0; i < set.NumQueries(text); ++i) {
        const text::BatchRows one = {set.offsets[static_cast<size_t>(text)] + i};
        const text::TokenBatch padded = text::PadQueries(set, one, 64);
        text::TokenBatch tokens = padded;
        tokens.label_matrix.clear();
        const DeviceBatch batch = ToDevice(tokens, 0, torch::kCPU);
        const torch::Tensor outputs = model_->forward(batch.input);
        sum = sum +
              at::cross_entropy_loss(outputs.slice(1, 0, 2), batch.labels, weights,
                                     at::Reduction::Sum, -100, loss.smoothing) +
              at::mse_loss(outputs.slice(1, 2, 4), torch::tensor(padded.label_matrix).view({1, 2}));
        aspects += 1.0;
      }
    }
    return sum / aspects;
  }

  std::vector<torch::Tensor> TakeGradients() {
    std::vector<torch::Tensor> gradients;
    for (torch::Tensor& parameter : model_->parameters()) {
      gradients.push_back(parameter.grad().clone());
      parameter.mutable_grad().reset();
    }
    return gradients;
  }

  // Those of `loss`, a mean, in every layout and in parts of every size.
  void ExpectEqualGradients(const LabelLoss& loss) {
    const text::BatchRows texts = {7, 3, 0, 11, 5};
    task_ =
        std::make_unique<MultiQuery>(model_, TaskParts{.data = data_, .max_positions = 64}, loss);
    const torch::Tensor whole = PlainLoss(texts, loss);
    whole.backward();
    const auto expected = TakeGradients();
    for (const text::QueryPadding padding :
         {text::QueryPadding::kNone, text::QueryPadding::kBatch, text::QueryPadding::kCorpus}) {
      for (const int64_t at_once : {0, 1, 4}) {
        for (const int64_t micro_batch : {5, 2}) {
          SCOPED_TRACE(testing::Message()
                       << static_cast<int>(padding) << " " << at_once << " " << micro_batch);
          data_.query_layout = {.padding = padding, .at_once = at_once};
          const EffectiveBatch batch{.rows = texts,
                                     .plan = {.effective_batch = 5, .micro_batch = micro_batch}};
          EXPECT_NEAR(ComputeGradients(*task_, batch, torch::kCPU, log_), whole.item<double>(),
                      1e-5);
          const auto gradients = TakeGradients();
          for (size_t i = 0; i < expected.size(); ++i) {
            EXPECT_LE(LargestDifference(gradients[i], expected[i]), 1e-5) << i;
          }
        }
      }
    }
  }

  TinyTrial trial_;
  TrainerJob job_ = trial_.Job();
  RecordingEvents events_;
  StageLog log_{job_, *TestDevice().memory, events_};
  TextData data_;
  std::shared_ptr<TextClassifier> model_;
  std::unique_ptr<MultiQuery> task_;
};

TEST_F(MultiQueryTest, GradientsAreEqualWhateverTheLayoutAndTheParts) { ExpectEqualGradients({}); }

TEST_F(MultiQueryTest, ClassesAreWeighedAndSmoothedInTraining) {
  ExpectEqualGradients({.weights = {0.3f, 4.0f}, .smoothing = 0.2});
}

TEST_F(MultiQueryTest, MetricsAreEqualWhateverTheLayout) {
  const Metrics plain = task_->Evaluate(text::EvaluationBatches(data_.validation, 4));
  EXPECT_EQ(plain.size(), MetricsOf(TaskKind::kMultiQuery).size());
  EXPECT_NEAR(std::pow(plain.at("va_rmse"), 2),
              std::pow(plain.at("valence_rmse"), 2) + std::pow(plain.at("arousal_rmse"), 2), 1e-6);
  text::BatchRows all(13);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_NEAR(plain.at("loss"), PlainLoss(all).item<double>(), 1e-5);
  // So that trials with other weights compare.
  task_ = std::make_unique<MultiQuery>(model_, TaskParts{.data = data_, .max_positions = 64},
                                       LabelLoss{.weights = {0.3f, 4.0f}, .smoothing = 0.2});
  EXPECT_EQ(task_->Evaluate(text::EvaluationBatches(data_.validation, 4)), plain);
  for (const text::QueryPadding padding :
       {text::QueryPadding::kBatch, text::QueryPadding::kCorpus}) {
    for (const int64_t at_once : {0, 3}) {
      data_.query_layout = {.padding = padding, .at_once = at_once};
      const Metrics metrics = task_->Evaluate(text::EvaluationBatches(data_.validation, 13));
      for (const auto& [name, value] : plain) EXPECT_NEAR(metrics.at(name), value, 1e-5) << name;
    }
  }
}

// Each remedy needs less than padding to the corpus, and the estimate is no less than what is used.
TEST_F(MultiQueryTest, TheRemediesNeedLessAndTheEstimateKnowsIt) {
  const auto peak_of = [&](const ParamMap& params) {
    TrainerJob job = job_;
    for (const auto& [name, value] : params) job.task.params[name] = value;
    job.task.params["train.batch_size"] = int64_t{4};
    job.task.plan = {.effective_batch = 4, .micro_batch = 4};
    return ExpectPeakWithinEstimates(job);
  };
  const Bytes corpus = peak_of({{"aspects.padding", std::string("corpus")}});
  const Bytes filtered = peak_of({{"aspects.padding", std::string("corpus")},
                                  {"aspects.max", int64_t{5}},
                                  {"train.eval_batch_multiplier", int64_t{1}}});
  const Bytes own = peak_of({{"aspects.padding", std::string("none")}});
  const Bytes in_pieces = peak_of({{"aspects.at_once", int64_t{2}}});
  EXPECT_LT(filtered, corpus);
  EXPECT_LT(own, corpus);
  EXPECT_LT(in_pieces, own);
}

TEST_F(MultiQueryTest, ATrialLearnsAndNamesItsOutputs) {
  job_.task.trainer.epochs = 20;
  job_.task.params["train.lr"] = 5e-3;
  const OutcomeMessage message = RunTrial(job_, TestDevice(), events_, events_);
  ASSERT_TRUE(std::holds_alternative<Completed>(*message.outcome))
      << OutcomeToJson(*message.outcome);
  const auto measured = events_.All<MeasurementMessage>();
  EXPECT_LT(measured.back().measurement.metrics.at("va_rmse"),
            0.9 * measured.front().measurement.metrics.at("va_rmse"));
  const auto config = nlohmann::json::parse(std::ifstream(trial_.Path("out/best/config.json")));
  EXPECT_EQ(config["id2label"]["0"], "food");
  EXPECT_EQ(config["id2label"]["3"], "arousal");
  EXPECT_FALSE(config.contains("problem_type"));
}

TEST_F(MultiQueryTest, BadInputIsOneLine) {
  const auto failure_of = [&](const TrainerJob& job) {
    const OutcomeMessage message = RunTrial(job, TestDevice(), events_, events_);
    const auto* failed = std::get_if<Failed>(&*message.outcome);
    return failed == nullptr ? std::string() : failed->message;
  };
  TrainerJob job = job_;
  job.task.objective.metric = "mcc";
  EXPECT_THAT(failure_of(job), HasSubstr("(the metrics of multi-query), got 'mcc'"));
  job = job_;
  job.task.params["aspects.padding"] = std::string("most");
  EXPECT_THAT(failure_of(job), HasSubstr("aspects.padding: expected none, batch or corpus"));
  job = job_;
  job.task.trainer.labels = {"food"};
  EXPECT_THAT(failure_of(job), HasSubstr("aspects.jsonl:2: Category: expected one of"));
}

}  // namespace
}  // namespace hpo::trainer
