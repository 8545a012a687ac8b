#include "worker/trainer/program/run_trial.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/models/files/safetensors.h"

namespace hpo::trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class RunTrialTest : public testing::Test {
 protected:
  OutcomeMessage Run(const TrainerJob& job) {
    events_.messages.clear();
    OutcomeMessage outcome = RunTrial(job, device_, events_, events_);
    EXPECT_EQ(device_.memory->Read().live, device_.baseline);
    return outcome;
  }

  // Runs a job that must complete.
  Completed Complete(const TrainerJob& job) {
    const OutcomeMessage message = Run(job);
    if (const auto* failed = std::get_if<Failed>(&message.outcome.value())) {
      ADD_FAILURE() << failed->message;
    }
    EXPECT_TRUE(message.clean);
    const auto* completed = std::get_if<Completed>(&*message.outcome);
    return completed != nullptr ? *completed : Completed{};
  }

  // Runs a job that must fail.
  Failed Fail(const TrainerJob& job) {
    const OutcomeMessage message = Run(job);
    EXPECT_TRUE(message.clean);
    const auto* failed = std::get_if<Failed>(&message.outcome.value());
    if (failed == nullptr) {
      ADD_FAILURE() << "expected a failure, got " << OutcomeToJson(*message.outcome);
      return {};
    }
    return *failed;
  }

  // Peak of live bytes that the job reaches without a limit.
  Bytes PeakOf(TrainerJob job) {
    job.task.limit = Bytes{};
    job.output_dir.clear();
    return Run(job).memory.live_peak;
  }

  TinyTrial trial_;
  RecordingEvents events_;
  TrialDevice& device_ = TestDevice();
};

TEST_F(RunTrialTest, LearnsAndKeepsTheBestWeights) {
  TrainerJob job = trial_.Job();
  job.task.trainer.epochs = 10;
  job.task.params["train.lr"] = 3e-3;
  const Completed completed = Complete(job);
  EXPECT_GE(completed.metrics.at("macro_f1"), 0.8);
  EXPECT_EQ(completed.model_path, trial_.Path("out/best"));
  const auto measurements = events_.All<MeasurementMessage>();
  ASSERT_EQ(measurements.size(), 10u);
  double best = 0.0;
  for (size_t i = 0; i < measurements.size(); ++i) {
    const Measurement& measurement = measurements[i].measurement;
    EXPECT_EQ(measurement.step, static_cast<int64_t>(6 * (i + 1)));
    EXPECT_DOUBLE_EQ(measurement.epoch, static_cast<double>(i + 1));
    best = std::max(best, measurement.metrics.at("macro_f1"));
  }
  EXPECT_DOUBLE_EQ(completed.metrics.at("macro_f1"), best);
  EXPECT_LT(measurements.back().measurement.metrics.at("train_loss"),
            measurements.front().measurement.metrics.at("train_loss"));
  EXPECT_THAT(events_.Stages(), ElementsAre("Trial Start", "Training Start", "Probe",
                                            "Training End", "Trial Success"));
}

TEST_F(RunTrialTest, OfSeveralLabelsOneThatNoRowHasIsTold) {
  std::string rows = TinyRows(16, 3);
  for (const char* label : {"a", "b", "c"}) {
    absl::StrReplaceAll({{absl::StrCat(R"("label":")", label, R"(")"),
                          absl::StrCat(R"("labels":[")", label, R"("])")}},
                        &rows);
  }
  TrainerJob job = trial_.Job();
  job.task.trainer.train = trial_.Write("several.jsonl", rows);
  job.task.trainer.validation = job.task.trainer.train;
  job.task.trainer.labels = {"a", "b", "rare", "c"};
  job.task.trainer.model_init = "random";
  Complete(job);
  const auto logs = events_.All<LogMessage>();
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_THAT(logs[0].text, EndsWith("several.jsonl: no training row has the label rare"));
}

TEST_F(RunTrialTest, RowsAboveTheModelsPositionsAreCountedAndTold) {
  std::string rows = TinyRows(16, 3);
  for (const int words : {38, 39, 60}) {  // and two special tokens; the model has 40 positions
    absl::StrAppend(&rows, R"({"text":")");
    for (int i = 0; i < words; ++i) absl::StrAppend(&rows, "w", i, " ");
    absl::StrAppend(&rows, R"(","label":"a"})", "\n");
  }
  TrainerJob job = trial_.Job();
  job.task.trainer.train = trial_.Write("long.jsonl", rows);
  job.task.params["tok.max_length"] = int64_t{64};
  Complete(job);
  const auto logs = events_.All<LogMessage>();
  ASSERT_EQ(logs.size(), 1u) << "of valid.jsonl no row is cut";
  EXPECT_EQ(logs[0].level, "warning");
  EXPECT_THAT(logs[0].text, EndsWith("long.jsonl: 2 of 19 rows are longer than the model's 40 "
                                     "positions and are truncated (tok.max_length: 64)"));
}

TEST_F(RunTrialTest, TheBestFolderTrainsAgain) {
  Complete(trial_.Job());
  TrainerJob again = trial_.Job();
  again.model_path = trial_.Path("out/best");
  again.output_dir = trial_.Path("again");
  std::filesystem::create_directories(again.output_dir);
  EXPECT_EQ(Complete(again).model_path, trial_.Path("again/best"));
}

TEST_F(RunTrialTest, OneSeedGivesTheSameWeightsBitForBit) {
  Complete(trial_.Job());
  const std::string first = BestWeights(trial_);
  Complete(trial_.Job());
  EXPECT_EQ(BestWeights(trial_), first);
  TrainerJob other = trial_.Job();
  other.task.params["seed"] = int64_t{99};
  Complete(other);
  EXPECT_NE(BestWeights(trial_), first);
}

TEST_F(RunTrialTest, MeasuresEveryNStepsAndAtTheEndOfAnEpoch) {
  TrainerJob job = trial_.Job();
  job.task.trainer.measure_every_steps = 4;
  job.task.trainer.epochs = 2;
  Complete(job);
  std::vector<int64_t> steps;
  for (const auto& message : events_.All<MeasurementMessage>()) {
    steps.push_back(message.measurement.step);
  }
  EXPECT_THAT(steps, ElementsAre(4, 6, 8, 12));
}

TEST_F(RunTrialTest, EndsWhereMeasurementsGetNoBetter) {
  TrainerJob job = trial_.Job();
  job.task.params["train.lr"] = 0.0;
  job.task.params["train.early_stopping"] = int64_t{2};
  job.task.trainer.epochs = 10;
  const Completed completed = Complete(job);
  EXPECT_EQ(events_.All<MeasurementMessage>().size(), 3u);  // the first is the best
  EXPECT_EQ(completed.metrics, events_.All<MeasurementMessage>()[0].measurement.metrics);
  EXPECT_EQ(completed.model_path, trial_.Path("out/best"));
}

TEST_F(RunTrialTest, TrainsOnAShareOfTheRows) {
  TrainerJob job = trial_.Job();
  job.task.params["data.subset"] = 0.5;
  Complete(job);
  // 48 rows of three labels: 24, or one more for each label of an odd number, in batches of 8.
  const int64_t steps = events_.All<MeasurementMessage>().back().measurement.step;
  EXPECT_GE(steps, 3);
  EXPECT_LE(steps, 4);
}

TEST_F(RunTrialTest, TheEffectiveBatchDecidesNotHowItIsSplit) {
  TrainerJob whole = trial_.Job();
  whole.task.params["model.dropout"] = 0.0;
  TrainerJob split = whole;
  split.task.plan.micro_batch = 3;
  const Metrics a = Complete(whole).metrics;
  const Metrics b = Complete(split).metrics;
  EXPECT_NEAR(a.at("train_loss"), b.at("train_loss"), 1e-4);
  EXPECT_NEAR(a.at("loss"), b.at("loss"), 1e-3);
}

TEST_F(RunTrialTest, AnOutOfMemoryBatchIsRedoneSmallerAndEqualsAnUndisturbedRun) {
  TrainerJob small = trial_.Job();
  small.task.plan.micro_batch = 4;
  const Bytes needs_half = PeakOf(small);
  const Bytes needs_whole = PeakOf(trial_.Job());
  ASSERT_GT(needs_whole, needs_half);

  TrainerJob job = trial_.Job();
  job.task.limit = Bytes{(needs_half.count + needs_whole.count) / 2};
  const OutcomeMessage met = Run(job);
  ASSERT_TRUE(std::holds_alternative<Completed>(*met.outcome));
  EXPECT_TRUE(met.clean);
  EXPECT_GE(met.memory.num_ooms, 1);
  EXPECT_EQ(met.memory.num_replans, 1);
  EXPECT_LE(met.memory.live_peak, job.task.limit);
  // The largest that fits, by the estimate.
  EXPECT_EQ(met.final_plan.effective_batch, 8);
  EXPECT_GE(met.final_plan.micro_batch, 4);
  EXPECT_LT(met.final_plan.micro_batch, 8);
  EXPECT_THAT(events_.Stages(), Contains("OOM Error"));
  EXPECT_THAT(events_.Stages(), Contains("replan"));
  for (const MemoryMessage& message : events_.All<MemoryMessage>()) {
    EXPECT_EQ(message.plan.has_value(), message.stage == "replan");
  }
}

TEST_F(RunTrialTest, AnOutOfMemoryErrorAtTheFirstStepLeavesNoTraceInTheWeights) {
  // The longest row is in a batch of its own, so that the error comes at a known place: step 0.
  TrainerJob job = trial_.Job();
  std::string rows = TinyRows(8, 5);
  job.task.trainer.train = trial_.Write("eight.jsonl", rows);
  job.task.trainer.epochs = 3;
  TrainerJob small = job;
  small.task.plan.micro_batch = 4;
  Complete(small);
  const std::string undisturbed = BestWeights(trial_);
  const Bytes needs_half = PeakOf(small);
  job.task.limit = Bytes{(needs_half.count + PeakOf(job).count) / 2};
  Complete(job);
  ASSERT_THAT(events_.Stages(), Contains("replan"));
  EXPECT_EQ(BestWeights(trial_), undisturbed);
}

TEST_F(RunTrialTest, WhatDoesNotFitAtOneRowIsPruned) {
  TrainerJob job = trial_.Job();
  TrainerJob smallest = job;
  smallest.task.plan.micro_batch = 1;
  job.task.limit = PeakOf(smallest) - KiB(8);
  const OutcomeMessage message = Run(job);
  const auto* oom = std::get_if<OutOfMemory>(&*message.outcome);
  ASSERT_NE(oom, nullptr);
  EXPECT_TRUE(message.clean);
  EXPECT_FALSE(oom->predicted);
  EXPECT_EQ(oom->plan.micro_batch, 1);
  EXPECT_EQ(oom->limit, job.task.limit);
  EXPECT_GT(oom->requested, Bytes{});
  EXPECT_GT(oom->peak, job.task.limit - MiB(1));
  EXPECT_FALSE(oom->phase.empty());
  EXPECT_THAT(oom->message, HasSubstr("out of memory. Tried to allocate"));
  EXPECT_FALSE(oom->traceback.empty());
  EXPECT_EQ(message.memory.num_replans, 3);
  EXPECT_EQ(message.memory.num_ooms, 4);
  EXPECT_FALSE(std::filesystem::exists(trial_.Path("out/best")));
}

TEST_F(RunTrialTest, ThePolicyStrictNeverReplans) {
  TrainerJob job = trial_.Job();
  job.task.memory.policy = MemoryPolicy::kStrict;
  job.task.limit = PeakOf(job) - KiB(64);
  const OutcomeMessage message = Run(job);
  const auto* oom = std::get_if<OutOfMemory>(&*message.outcome);
  ASSERT_NE(oom, nullptr);
  EXPECT_EQ(oom->plan.micro_batch, 8);
  EXPECT_EQ(message.memory.num_replans, 0);
  EXPECT_THAT(events_.Stages(), Not(Contains("replan")));
}

TEST_F(RunTrialTest, AModelThatDoesNotFitIsPrunedBeforeTheFirstStep) {
  TrainerJob job = trial_.Job();
  job.task.limit = device_.baseline + KiB(64);
  const OutcomeMessage message = Run(job);
  const auto* oom = std::get_if<OutOfMemory>(&*message.outcome);
  ASSERT_NE(oom, nullptr);
  EXPECT_TRUE(message.clean);
  EXPECT_EQ(oom->phase, "model");
  EXPECT_EQ(oom->kind, OomKind::kConfiguration);
  EXPECT_THAT(events_.Stages(), ElementsAre("Trial Start", "OOM Error"));
}

TEST_F(RunTrialTest, AdmissionRefusesWithoutStarting) {
  TrainerJob job = trial_.Job();
  job.task.admission = true;
  job.task.limit = KiB(200);
  const OutcomeMessage message = Run(job);
  const auto* oom = std::get_if<OutOfMemory>(&*message.outcome);
  ASSERT_NE(oom, nullptr);
  EXPECT_TRUE(oom->predicted);
  EXPECT_GT(oom->needed, job.task.limit);
  EXPECT_EQ(oom->plan.micro_batch, 1);
  EXPECT_THAT(oom->message, HasSubstr("allowed 200.00 KiB"));
  EXPECT_EQ(message.memory.num_ooms, 0);
  EXPECT_THAT(events_.Stages(), ElementsAre("Trial Start"));
}

TEST_F(RunTrialTest, AdmissionPicksAMicroBatchThatFits) {
  TrainerJob job = trial_.Job();
  job.task.admission = true;
  job.task.params["train.batch_size"] = int64_t{48};
  job.task.plan = {.effective_batch = 48, .micro_batch = 48};
  const Bytes needs_whole = PeakOf(job);
  job.task.limit = Bytes{needs_whole.count / 2};
  const OutcomeMessage message = Run(job);
  ASSERT_TRUE(std::holds_alternative<Completed>(*message.outcome))
      << OutcomeToJson(*message.outcome);
  EXPECT_LT(message.final_plan.micro_batch, 48);
  EXPECT_EQ(message.final_plan.effective_batch, 48);
  EXPECT_EQ(message.memory.num_ooms, 0);
  EXPECT_LE(message.memory.live_peak, job.task.limit);
}

TEST_F(RunTrialTest, FiftyTrialsAlternatingLeaveNothingBehind) {
  TrainerJob fits = trial_.Job();
  fits.output_dir.clear();
  fits.task.trainer.train = trial_.Write("eight.jsonl", TinyRows(8, 5));
  TrainerJob out_of_memory = fits;
  out_of_memory.task.memory.policy = MemoryPolicy::kStrict;
  const Bytes needed = PeakOf(fits);
  for (int i = 0; i < 50; ++i) {
    SCOPED_TRACE(i);
    const bool should_fit = i % 2 == 1;
    TrainerJob job = should_fit ? fits : out_of_memory;
    // At every place of the step in turn: embeddings, layers, backward.
    job.task.limit = should_fit ? needed : Bytes{needed.count * (50 + i) / 101};
    const OutcomeMessage message = Run(job);
    EXPECT_TRUE(message.clean);
    EXPECT_EQ(device_.memory->Read().live, device_.baseline);
    EXPECT_EQ(message.memory.baseline, device_.baseline);
    EXPECT_EQ(std::holds_alternative<Completed>(*message.outcome), should_fit);
    EXPECT_EQ(std::holds_alternative<OutOfMemory>(*message.outcome), !should_fit);
  }
}

TEST_F(RunTrialTest, EvaluationThatDoesNotFitIsRedoneSmaller) {
  TrainerJob job = trial_.Job();
  const Bytes trains_in = PeakOf(job);
  job.task.params["train.eval_batch_multiplier"] = int64_t{64};
  std::string rows;
  for (int i = 0; i < 20; ++i) rows += TinyRows(24, 7);
  job.task.trainer.validation = trial_.Write("many.jsonl", rows);
  job.task.limit = trains_in;
  const OutcomeMessage message = Run(job);
  ASSERT_TRUE(std::holds_alternative<Completed>(*message.outcome));
  EXPECT_GE(message.memory.num_ooms, 1);
  // Training goes on as fast as before.
  EXPECT_EQ(message.final_plan.micro_batch, 8);
  EXPECT_EQ(message.memory.num_replans, 0);
}

TEST_F(RunTrialTest, StopsBetweenStepsWithTheOutcomeThatTheReasonAsksFor) {
  TrainerJob job = trial_.Job();
  job.task.trainer.epochs = 3;
  events_.StopAt(6, "pruned");
  OutcomeMessage message = Run(job);
  const auto* pruned = std::get_if<StoppedByPruner>(&message.outcome.value());
  ASSERT_NE(pruned, nullptr);
  EXPECT_EQ(pruned->step, 6);
  EXPECT_EQ(pruned->metrics.count("macro_f1"), 1u);
  events_.StopAt(0, "cancelled");
  message = Run(job);
  EXPECT_TRUE(std::holds_alternative<Cancelled>(message.outcome.value()));
  for (const char* reason : {"drain", "lease lost"}) {
    events_.StopAt(0, reason);
    message = Run(job);
    EXPECT_FALSE(message.outcome.has_value());
    EXPECT_TRUE(message.clean);
  }
}

TEST_F(RunTrialTest, ATrialThatHasUsedItsTimeIsMeasuredWhereItStands) {
  TrainerJob job = trial_.Job();
  job.task.trainer.epochs = 3;
  events_.StopAt(1, "time limit");
  OutcomeMessage message = Run(job);
  const auto measured = events_.All<MeasurementMessage>();
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_EQ(measured[0].measurement.step, 1);
  EXPECT_EQ(message.outcome,
            TrialOutcome(StoppedByPruner{.step = 1, .metrics = measured[0].measurement.metrics}));
  EXPECT_TRUE(std::filesystem::exists(trial_.Path("out/best/model.safetensors")));

  events_ = RecordingEvents();
  events_.StopAt(0, "time limit");
  message = Run(job);
  EXPECT_EQ(message.outcome, TrialOutcome(StoppedByPruner{})) << "no step, nothing to measure";
  EXPECT_TRUE(events_.All<MeasurementMessage>().empty());
}

TEST_F(RunTrialTest, ALossThatIsNotFiniteEndsTheAttempt) {
  TrainerJob job = trial_.Job();
  job.task.params["train.lr"] = 1e30;
  job.task.params["train.warmup_ratio"] = 0.0;
  job.task.trainer.epochs = 3;
  const Failed failed = Fail(job);
  EXPECT_EQ(failed.failure_class, FailureClass::kDiverged);
  EXPECT_THAT(failed.message, HasSubstr("at step 2 of 18"));
}

TEST_F(RunTrialTest, LossesReadLateChangeNothing) {
  TrainerJob job = trial_.Job();
  job.task.trainer.epochs = 2;
  job.task.trainer.measure_every_steps = 4;
  const Completed read = Complete(job);
  const auto measured = events_.All<MeasurementMessage>();
  const std::string weights = BestWeights(trial_);
  const LateReading late(device_);
  EXPECT_EQ(Complete(job).metrics, read.metrics);
  EXPECT_EQ(events_.All<MeasurementMessage>(), measured);
  EXPECT_EQ(BestWeights(trial_), weights);
  EXPECT_EQ(events_.All<ProgressMessage>().front().step, 1);
}

TEST_F(RunTrialTest, ALossThatIsNotFiniteIsFoundLateButWithItsStep) {
  TrainerJob job = trial_.Job();
  job.task.params["train.lr"] = 1e30;
  job.task.params["train.warmup_ratio"] = 0.0;
  job.task.trainer.epochs = 3;
  job.checkpoints = {.folder = trial_.Path("checkpoints/tiny/000042"), .every_steps = 3};
  const std::string at_once = Fail(job).message;
  const LateReading late(device_);
  const Failed failed = Fail(job);
  EXPECT_EQ(failed.failure_class, FailureClass::kDiverged);
  EXPECT_EQ(failed.message, at_once);
  EXPECT_THAT(events_.All<MeasurementMessage>(), testing::IsEmpty());
  EXPECT_THAT(events_.All<CheckpointMessage>(), testing::IsEmpty());
}

TEST_F(RunTrialTest, AnOutOfMemoryBatchIsRedoneWhereLossesAreReadLateToo) {
  TrainerJob job = trial_.Job();
  job.task.limit = Bytes{PeakOf(job).count * 9 / 10};
  Complete(job);
  const std::string weights = BestWeights(trial_);
  const auto measured = events_.All<MeasurementMessage>();
  const LateReading late(device_);
  const OutcomeMessage message = Run(job);
  EXPECT_GE(message.memory.num_ooms, 1);
  EXPECT_EQ(BestWeights(trial_), weights);
  EXPECT_EQ(events_.All<MeasurementMessage>(), measured);
}

TEST_F(RunTrialTest, TrainsFromScratchByChoice) {
  TrainerJob job = trial_.Job();
  job.task.trainer.model_init = "random";
  std::filesystem::remove(trial_.Path("model/model.safetensors"));
  Complete(job);
  const std::string first = BestWeights(trial_);
  Complete(job);
  EXPECT_EQ(BestWeights(trial_), first);
}

TEST_F(RunTrialTest, HeadLayersPairsAndSeveralLabels) {
  TrainerJob job = trial_.Job();
  job.task.params["head.layers"] = int64_t{2};
  job.task.params["head.size_1"] = int64_t{12};
  job.task.params["head.size_2"] = int64_t{10};
  job.task.trainer.labels = {"x", "y"};
  job.task.trainer.model_init = "random";
  const std::string rows = R"({"text":"w1 w2","pair":"w3","labels":["x","y"]})"
                           "\n"
                           R"({"text":"w5","pair":"w7 w8","labels":[]})"
                           "\n"
                           R"({"text":"w9 w2 w4","pair":"w3","labels":["y"]})"
                           "\n";
  job.task.trainer.train = job.task.trainer.validation = trial_.Write("multi.jsonl", rows);
  const Completed completed = Complete(job);
  EXPECT_EQ(completed.metrics.count("micro_f1"), 1u);
  const auto weights = SafetensorsFile::Open(trial_.Path("out/best/model.safetensors"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  ASSERT_NE(weights->Find("classifier.hidden.1.weight"), nullptr);
  EXPECT_EQ(weights->Find("classifier.hidden.1.weight")->shape, (std::vector<int64_t>{10, 12}));
  EXPECT_EQ(weights->Find("classifier.weight")->shape, (std::vector<int64_t>{2, 10}));
}

struct BadJob {
  const char* what;
  void (*spoil)(TrainerJob& job, const TinyTrial& trial);
  FailureClass failure_class;
  const char* message;
};

const BadJob kBadJobs[] = {
    {"unknown parameter",
     [](TrainerJob& job, const TinyTrial&) { job.task.params["train.lrr"] = 1.0; },
     FailureClass::kBadConfiguration, "train.lrr"},
    {"metric", [](TrainerJob& job, const TinyTrial&) { job.task.objective.metric = "auc"; },
     FailureClass::kBadConfiguration, "got 'auc'"},
    {"task", [](TrainerJob& job, const TinyTrial&) { job.task.trainer.task = "translation"; },
     FailureClass::kBadConfiguration, "got 'translation'"},
    {"no epochs", [](TrainerJob& job, const TinyTrial&) { job.task.trainer.epochs = 0; },
     FailureClass::kBadConfiguration, "epochs"},
    {"no model folder", [](TrainerJob& job, const TinyTrial&) { job.model_path = "/nonexistent"; },
     FailureClass::kBadModel, "/nonexistent"},
    {"broken weights",
     [](TrainerJob&, const TinyTrial& trial) { trial.Write("model/model.safetensors", "broken"); },
     FailureClass::kBadModel, "model.safetensors"},
    {"another vocabulary",
     [](TrainerJob&, const TinyTrial& trial) {
       std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
       for (int i = 0; i < 200; ++i) words += absl::StrCat("x", i, "\n");
       trial.Write("model/vocab.txt", words);
     },
     FailureClass::kBadModel, "vocab.txt"},
    {"no data",
     [](TrainerJob& job, const TinyTrial&) { job.task.trainer.train = "/nonexistent.jsonl"; },
     FailureClass::kBadData, "/nonexistent.jsonl"},
    {"an unknown label",
     [](TrainerJob& job, const TinyTrial& trial) {
       job.task.trainer.validation =
           trial.Write("other.jsonl", "{\"text\":\"w1\",\"label\":\"zebra\"}\n");
     },
     FailureClass::kBadData, "zebra"},
};

TEST_F(RunTrialTest, AHeadForOtherLabelsIsReplaced) {
  TrainerJob job = trial_.Job();
  job.task.trainer.labels = {};
  job.task.trainer.train = job.task.trainer.validation = trial_.Write(
      "two.jsonl", "{\"text\":\"w1\",\"label\":\"x\"}\n{\"text\":\"w2\",\"label\":\"y\"}\n");
  Complete(job);
  std::string told;
  for (const LogMessage& message : events_.All<LogMessage>()) told += message.text;
  EXPECT_THAT(told, HasSubstr("head"));
}

TEST_F(RunTrialTest, BadInputIsOneClearLineAndItsClass) {
  for (const BadJob& bad : kBadJobs) {
    SCOPED_TRACE(bad.what);
    const TinyTrial trial;
    TrainerJob job = trial.Job();
    bad.spoil(job, trial);
    const Failed failed = Fail(job);
    EXPECT_EQ(failed.failure_class, bad.failure_class) << failed.message;
    EXPECT_THAT(failed.message, HasSubstr(bad.message));
    EXPECT_THAT(failed.message, Not(HasSubstr("\n")));
    EXPECT_FALSE(std::filesystem::exists(trial.Path("out/best")));
  }
}

}  // namespace
}  // namespace hpo::trainer
