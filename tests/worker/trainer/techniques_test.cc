// Whole trials with each memory-saving technique and the same trial without it.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "memory/trace/lora.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/models/files/safetensors.h"
#include "worker/trainer/program/run_trial.h"

namespace hpo::trainer {
namespace {

struct Trained {
  OutcomeMessage message;
  std::string weights;                       // the best, all bytes
  std::vector<MeasurementMessage> measured;  // in order

  double First(const std::string& metric) const {
    return measured.front().measurement.metrics.at(metric);
  }
  double Last(const std::string& metric) const {
    return measured.back().measurement.metrics.at(metric);
  }
  Bytes peak() const { return message.memory.live_peak; }
};

class TechniquesTest : public testing::Test {
 protected:
  // The tiny trial in three epochs, with `params` more.
  TrainerJob Job(const ParamMap& params) const {
    TrainerJob job = trial_.Job();
    job.task.trainer.epochs = 3;
    for (const auto& [name, value] : params) job.task.params[name] = value;
    return job;
  }

  Trained Train(const TrainerJob& job) {
    events_.messages.clear();
    Trained trained;
    trained.message = RunTrial(job, device_, events_, events_);
    EXPECT_TRUE(trained.message.clean);
    EXPECT_EQ(device_.memory->Read().live, device_.baseline);
    if (!trained.message.outcome.has_value() ||
        !std::holds_alternative<Completed>(*trained.message.outcome)) {
      ADD_FAILURE() << OutcomeToJson(*trained.message.outcome);
      return trained;
    }
    trained.measured = events_.All<MeasurementMessage>();
    trained.weights = BestWeights(trial_);
    return trained;
  }

  Trained TrainWith(const ParamMap& params) { return Train(Job(params)); }

  TinyTrial trial_;
  RecordingEvents events_;
  TrialDevice& device_ = TestDevice();
};

TEST_F(TechniquesTest, LayersComputedAgainChangeNothingButThePeak) {
  const Trained plain = TrainWith({});
  for (const int64_t every : {1, 2}) {
    SCOPED_TRACE(every);
    const Trained checkpointed = TrainWith({{"memory.checkpoint_every", every}});
    EXPECT_TRUE(checkpointed.weights == plain.weights);
    EXPECT_EQ(checkpointed.Last("loss"), plain.Last("loss"));
    if (every == 1) {
      EXPECT_LT(checkpointed.peak(), plain.peak());
    }
    EXPECT_TRUE(checkpointed.message.final_plan.checkpointing);
  }
}

// The plan's checkpointing is as good as the configuration's.
TEST_F(TechniquesTest, ThePlanMayCheckpoint) {
  TrainerJob job = Job({});
  const Trained plain = Train(job);
  job.task.plan.checkpointing = true;
  const Trained planned = Train(job);
  EXPECT_TRUE(planned.weights == plain.weights);
  EXPECT_LT(planned.peak(), plain.peak());
}

TEST_F(TechniquesTest, OutOfMemoryWhileLayersAreComputedAgainIsRecoveredFrom) {
  TrainerJob job = Job({{"memory.checkpoint_every", int64_t{1}}});
  const Bytes whole = Train(job).peak();
  job.task.plan.micro_batch = 2;
  const Trained small = Train(job);
  ASSERT_LT(small.peak(), whole);
  job.task.plan.micro_batch = 8;
  job.task.limit = Bytes{(whole.count + small.peak().count) / 2};
  const Trained limited = Train(job);
  EXPECT_GE(limited.message.memory.num_ooms, 1);
  EXPECT_LE(limited.peak(), job.task.limit);
  EXPECT_LT(limited.message.final_plan.micro_batch, 8);
  EXPECT_TRUE(limited.message.final_plan.checkpointing);
}

TEST_F(TechniquesTest, OutOfMemoryAtOneRowTurnsCheckpointingOnWhereThePlanMayChoose) {
  TrainerJob job = Job({});
  job.task.plan.micro_batch = 1;
  const Trained plain = Train(job);
  job.task.plan.checkpointing = true;
  const Trained checkpointed = Train(job);
  ASSERT_LT(checkpointed.peak(), plain.peak());
  job.task.plan.checkpointing = false;
  job.task.limit = Bytes{(plain.peak().count + checkpointed.peak().count) / 2};
  job.task.memory.allow_checkpointing = true;
  const Trained recovered = Train(job);
  EXPECT_GE(recovered.message.memory.num_ooms, 1);
  EXPECT_EQ(recovered.message.memory.num_replans, 1);
  EXPECT_EQ(recovered.message.final_plan,
            (MemoryPlan{.effective_batch = 8, .micro_batch = 1, .checkpointing = true}));
  EXPECT_LE(recovered.peak(), job.task.limit);
  EXPECT_TRUE(recovered.weights == plain.weights) << "bit for bit";
  EXPECT_EQ(recovered.Last("loss"), plain.Last("loss"));

  for (const bool literally : {false, true}) {
    job.task.memory.allow_checkpointing = literally;
    job.task.memory.policy = literally ? MemoryPolicy::kStrict : MemoryPolicy::kPlan;
    job.task.params["train.batch_size"] = int64_t{1};
    job.task.params["train.grad_accum"] = int64_t{8};
    const OutcomeMessage pruned = RunTrial(job, device_, events_, events_);
    EXPECT_TRUE(std::holds_alternative<OutOfMemory>(*pruned.outcome)) << literally;
  }
}

TEST_F(TechniquesTest, AdmissionTurnsCheckpointingOnWhereThePlanMayChoose) {
  TrainerJob job = Job({});
  job.task.plan.micro_batch = 1;
  const Bytes plain = Train(job).peak();
  job.task.plan.checkpointing = true;
  job.task.limit = Bytes{(plain.count + Train(job).peak().count) / 2};
  job.task.plan.checkpointing = false;
  job.task.admission = true;
  job.task.memory.allow_checkpointing = true;
  const Trained admitted = Train(job);
  EXPECT_TRUE(admitted.message.final_plan.checkpointing);
  EXPECT_EQ(admitted.message.memory.num_ooms, 0);
  EXPECT_LE(admitted.peak(), job.task.limit);
}

// 8 and 11 bits of mantissa in products; weights, sums and norms keep theirs.
TEST_F(TechniquesTest, LowerPrecisionIsWithinItsRounding) {
  const Trained plain = TrainWith({});
  const std::pair<const char*, double> cases[] = {{"bf16", 1e-2}, {"fp16", 2e-3}};
  for (const auto& [precision, tolerance] : cases) {
    SCOPED_TRACE(precision);
    const Trained lower = TrainWith({{"train.precision", std::string(precision)}});
    EXPECT_NEAR(lower.First("train_loss"), plain.First("train_loss"),
                tolerance * plain.First("train_loss"));
    EXPECT_NEAR(lower.Last("loss"), plain.Last("loss"), 10 * tolerance * plain.Last("loss"));
    EXPECT_FALSE(lower.weights == plain.weights) << "nothing was rounded";
    EXPECT_LT(lower.peak(), plain.peak());
  }
}

TEST_F(TechniquesTest, Tf32NeedsACard) {
  events_.messages.clear();
  const OutcomeMessage message =
      RunTrial(Job({{"train.precision", std::string("tf32")}}), device_, events_, events_);
  const auto* const failed = std::get_if<Failed>(&*message.outcome);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->failure_class, FailureClass::kBadConfiguration);
  EXPECT_EQ(failed->message,
            "train.precision: tf32 needs a GPU, got a CPU; expected fp32, bf16 or fp16");
}

// Frozen weights end as they began, bit for bit; what is trained costs its states, what is not
// costs none.
TEST_F(TechniquesTest, FrozenParametersStayAsTheyAre) {
  const Trained plain = TrainWith({});
  const Trained frozen =
      TrainWith({{"model.freeze_embeddings", true}, {"model.freeze_layers", int64_t{1}}});
  EXPECT_LT(frozen.peak(), plain.peak());
  const auto before = SafetensorsFile::Open(trial_.Job().model_path + "/model.safetensors");
  const auto after = SafetensorsFile::Open(trial_.Path("out/best/model.safetensors"));
  ASSERT_TRUE(before.ok() && after.ok());
  int same = 0;
  for (const auto& [name, view] : after->tensors()) {
    const TensorView* const old = before->Find(name);
    if (old == nullptr) continue;  // the head
    const bool equal = std::equal(view.bytes.begin(), view.bytes.end(), old->bytes.begin());
    const bool is_frozen =
        absl::StrContains(name, "embeddings.") || absl::StrContains(name, "layer.0.");
    EXPECT_EQ(equal, is_frozen) << name;
    same += equal ? 1 : 0;
  }
  EXPECT_EQ(same, 5 + 16);
}

TEST_F(TechniquesTest, AdaptersLearnWithLittleMemory) {
  const Trained plain = TrainWith({});
  TrainerJob job = Job({{"lora.rank", int64_t{8}},
                        {"lora.targets", std::string(memory::kAllLinear)},
                        {"train.lr", 1e-2}});
  job.task.trainer.epochs = 12;
  const Trained adapted = Train(job);
  EXPECT_LT(adapted.peak(), plain.peak());
  EXPECT_LT(adapted.Last("train_loss"), 0.98 * adapted.First("train_loss"));
  // What is kept opens as a plain model, and beside it as adapters.
  EXPECT_EQ(adapted.weights.size(), plain.weights.size());
  const auto adapters =
      SafetensorsFile::Open(trial_.Path("out/best/adapter/adapter_model.safetensors"));
  ASSERT_TRUE(adapters.ok()) << adapters.status();
  EXPECT_NE(adapters->Find("base_model.model.bert.pooler.dense.lora_A.weight"), nullptr);
}

TEST_F(TechniquesTest, AdaptersLearnOnABaseOfFewerBits) {
  const auto train = [this](const char* base) {
    TrainerJob job = Job({{"lora.rank", int64_t{8}},
                          {"lora.targets", std::string(memory::kAllLinear)},
                          {"lora.base", std::string(base)},
                          {"train.lr", 1e-2}});
    job.task.trainer.epochs = 12;
    return Train(job);
  };
  const Trained whole = train("fp32");
  const std::pair<const char*, double> cases[] = {{"bf16", 2e-2}, {"nf4", 0.1}};
  for (const auto& [base, tolerance] : cases) {
    SCOPED_TRACE(base);
    const Trained adapted = train(base);
    EXPECT_NEAR(adapted.First("train_loss"), whole.First("train_loss"), tolerance);
    EXPECT_LT(adapted.Last("train_loss"), 0.98 * adapted.First("train_loss"));
    EXPECT_EQ(adapted.weights.size(), whole.weights.size());
  }
}

TEST_F(TechniquesTest, WhatCannotBeTrainedIsABadConfiguration) {
  const std::pair<ParamMap, const char*> cases[] = {
      {{{"model.freeze_layers", int64_t{99}}}, "layers of the model, got 99"},
      {{{"lora.rank", int64_t{4}}, {"lora.targets", std::string("q_proj")}},
       "lora.targets: expected ends of names of linear layers of bert (dense, key, query, value) "
       "or all-linear, got 'q_proj'"},
      {{{"lora.rank", int64_t{4}}, {"model.freeze_embeddings", true}},
       "expected neither with lora.rank"}};
  for (const auto& [params, expected] : cases) {
    SCOPED_TRACE(FormatParams(params));
    const OutcomeMessage message = RunTrial(Job(params), device_, events_, events_);
    const auto* const failed = std::get_if<Failed>(&*message.outcome);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->failure_class, FailureClass::kBadConfiguration);
    EXPECT_NE(failed->message.find(expected), std::string::npos) << failed->message;
  }
}

// Each learns the words that give the label away, and takes no more memory than AdamW.
TEST_F(TechniquesTest, EveryOptimizerLearns) {
  const Bytes adamw = TrainWith({}).peak();
  const std::pair<const char*, double> cases[] = {
      {"adamw_8bit", 1e-3}, {"adafactor", 1e-3}, {"sgd", 3e-2}};
  for (const auto& [optimizer, rate] : cases) {
    SCOPED_TRACE(optimizer);
    TrainerJob job = Job({{"train.optimizer", std::string(optimizer)}, {"train.lr", rate}});
    job.task.trainer.epochs = 12;
    const Trained trained = Train(job);
    EXPECT_LT(trained.Last("train_loss"), 0.98 * trained.First("train_loss"));
    EXPECT_LE(trained.peak(), adamw);
  }
}

}  // namespace
}  // namespace hpo::trainer
