// Whole trials without padding and the same trials with it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/synthetic_trial.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/models/files/safetensors.h"
#include "worker/trainer/program/run_trial.h"

namespace hpo::trainer {
namespace {

struct TrainedTrial {
  std::vector<Measurement> measurements;
  Bytes peak;
  std::map<std::string, std::vector<float>> weights;  // the best
};

class UnpaddedTest : public testing::Test {
 protected:
  // Without dropout, so that only rounding differs.
  TrainerJob Job(bool unpadded) const {
    TrainerJob job = trial_.Job();
    job.task.trainer.epochs = 2;
    job.task.params["model.dropout"] = 0.0;
    job.task.params["head.dropout"] = 0.0;
    job.task.params["memory.unpadded"] = unpadded;
    return job;
  }

  TrainerJob With(const ParamMap& params, bool unpadded = true) const {
    TrainerJob job = Job(unpadded);
    for (const auto& [name, value] : params) job.task.params[name] = value;
    return job;
  }

  TrainedTrial Train(const TrainerJob& job) {
    events_.messages.clear();
    const OutcomeMessage message = RunTrial(job, device_, events_, events_);
    EXPECT_TRUE(message.clean);
    TrainedTrial trained{.peak = message.memory.live_peak};
    if (!std::holds_alternative<Completed>(*message.outcome)) {
      ADD_FAILURE() << OutcomeToJson(*message.outcome);
      return trained;
    }
    for (const auto& measured : events_.All<MeasurementMessage>()) {
      trained.measurements.push_back(measured.measurement);
    }
    const auto file = SafetensorsFile::Open(trial_.Path("out/best/model.safetensors"));
    EXPECT_TRUE(file.ok()) << file.status();
    for (const auto& [name, view] : file->tensors()) {
      std::vector<float>& values = trained.weights[name];
      values.resize(view.bytes.size() / sizeof(float));
      std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    }
    return trained;
  }

  static void ExpectNear(const TrainedTrial& a, const TrainedTrial& b, double tolerance) {
    ASSERT_EQ(a.measurements.size(), b.measurements.size());
    for (size_t i = 0; i < a.measurements.size(); ++i) {
      for (const char* metric : {"loss", "train_loss"}) {
        EXPECT_NEAR(a.measurements[i].metrics.at(metric), b.measurements[i].metrics.at(metric),
                    tolerance)
            << metric << " " << i;
      }
    }
    ASSERT_EQ(a.weights.size(), b.weights.size());
    for (const auto& [name, values] : a.weights) {
      // Attention does not see it: its gradient is rounding, which AdamW makes a step of.
      if (absl::EndsWith(name, ".key.bias")) continue;
      const std::vector<float>& others = b.weights.at(name);
      ASSERT_EQ(values.size(), others.size()) << name;
      double largest = 0.0;
      for (size_t i = 0; i < values.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(values[i]) - others[i]));
      }
      EXPECT_LE(largest, 10 * tolerance) << name;
    }
  }

  static void ExpectEqual(const TrainedTrial& a, const TrainedTrial& b) {
    EXPECT_EQ(a.measurements, b.measurements);
    EXPECT_EQ(a.weights, b.weights);
  }

  TinyTrial trial_;
  RecordingEvents events_;
  TrialDevice& device_ = TestDevice();
};

TEST_F(UnpaddedTest, TrainsAsWithPaddingInLessMemory) {
  const TrainedTrial padded = Train(Job(/*unpadded=*/false));
  const TrainedTrial unpadded = Train(Job(/*unpadded=*/true));
  ExpectNear(unpadded, padded, 1e-5);
  EXPECT_LT(unpadded.peak, padded.peak);
}

TEST_F(UnpaddedTest, PartsOfABatchAddUp) {
  const TrainedTrial whole = Train(Job(/*unpadded=*/true));
  TrainerJob job = Job(/*unpadded=*/true);
  job.task.plan.micro_batch = 3;
  const TrainedTrial in_parts = Train(job);
  ExpectNear(in_parts, whole, 1e-5);
  EXPECT_LT(in_parts.peak, whole.peak);
}

TEST_F(UnpaddedTest, DropoutIsAFunctionOfTheSeed) {
  const ParamMap dropout = {{"model.dropout", 0.1}, {"head.dropout", 0.1}};
  const TrainedTrial first = Train(With(dropout));
  ExpectEqual(Train(With(dropout)), first);
  TrainerJob other = With(dropout);
  other.task.params["seed"] = int64_t{99};
  EXPECT_NE(Train(other).measurements, first.measurements);
  EXPECT_NE(Train(Job(/*unpadded=*/true)).measurements, first.measurements);
}

TEST_F(UnpaddedTest, LayersComputedAgainChangeNothingButThePeak) {
  const ParamMap dropout = {{"model.dropout", 0.1}};
  const TrainedTrial plain = Train(With(dropout));
  TrainerJob again = With(dropout);
  again.task.params["memory.checkpoint_every"] = int64_t{1};
  const TrainedTrial checkpointed = Train(again);
  ExpectEqual(checkpointed, plain);
  EXPECT_LT(checkpointed.peak, plain.peak);
}

TEST_F(UnpaddedTest, AdaptersTrainAsWithPadding) {
  const ParamMap lora = {{"lora.rank", int64_t{4}}, {"lora.targets", std::string("all-linear")}};
  ExpectNear(Train(With(lora)), Train(With(lora, /*unpadded=*/false)), 1e-5);
}

// Products in 16 bits round otherwise where their sizes differ.
TEST_F(UnpaddedTest, LowerPrecisionIsWithinItsRounding) {
  const TrainedTrial plain = Train(Job(/*unpadded=*/true));
  for (const auto& [precision, tolerance] : {std::pair("bf16", 1e-2), std::pair("fp16", 2e-3)}) {
    SCOPED_TRACE(precision);
    const TrainedTrial lower = Train(With({{"train.precision", std::string(precision)}}));
    const double expected = plain.measurements.front().metrics.at("train_loss");
    EXPECT_NEAR(lower.measurements.front().metrics.at("train_loss"), expected,
                tolerance * expected);
    EXPECT_LT(lower.peak, plain.peak);
  }
}

TEST_F(UnpaddedTest, WhatCannotRunWithoutPaddingIsABadConfiguration) {
  SyntheticTrial trial;
  trial.params = {{"memory.unpadded", true}};
  const auto message_of = [this](const SyntheticTrial& refused) {
    const SyntheticFolder folder(refused, testing::TempDir());
    const OutcomeMessage message = RunTrial(folder.Job(), device_, events_, events_);
    const auto* const failed = std::get_if<Failed>(&*message.outcome);
    EXPECT_NE(failed, nullptr) << OutcomeToJson(*message.outcome);
    if (failed == nullptr) return std::string();
    EXPECT_EQ(failed->failure_class, FailureClass::kBadConfiguration);
    return failed->message;
  };
  for (const char* family : {"deberta-v2", "gpt2", "qwen2"}) {
    trial.family = family;
    trial.token_types = 0;
    EXPECT_EQ(message_of(trial),
              std::string("memory.unpadded: expected a model of bert, roberta, xlm-roberta, "
                          "camembert, electra or distilbert, got ") +
                  family + ", which runs padded");
  }
  trial.family = "bert";
  trial.token_types = 2;
  trial.task = "multi-query";
  EXPECT_EQ(message_of(trial),
            "memory.unpadded: expected text-classification or text-regression, got multi-query, "
            "which runs padded");
}

}  // namespace
}  // namespace hpo::trainer
