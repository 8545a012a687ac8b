#include "worker/trainer/program/trial_checks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "memory/need/memory_replay.h"

namespace hpo::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TrainerJob AdmittedJob() {
  TrainerJob job;
  job.task.objective.metric = "macro_f1";
  job.task.admission = true;
  return job;
}

TEST(CheckJob, SaysWhatIsExpected) {
  TrainingOptions options;
  EXPECT_TRUE(CheckJob(AdmittedJob(), options).ok());
  const auto error = [&options](void (*change)(TrainerJob&)) {
    TrainerJob job = AdmittedJob();
    change(job);
    return std::string(CheckJob(job, options).message());
  };
  EXPECT_THAT(error([](TrainerJob& job) { job.task.trainer.task = "chess"; }),
              HasSubstr("task: expected text-classification"));
  EXPECT_THAT(error([](TrainerJob& job) { job.task.objective.metric = "elo"; }),
              HasSubstr("objective.metric: "));
  EXPECT_EQ(error([](TrainerJob& job) { job.task.trainer.model_init = "zero"; }),
            "model.init: expected pretrained or random, got 'zero'");
  EXPECT_EQ(
      error([](TrainerJob& job) { job.task.trainer.gpus = 4; }),
      "gpus: expected 1, as hpo-trainer trains on one GPU, got 4; a program of your own can use "
      "several");
  EXPECT_EQ(error([](TrainerJob& job) { job.task.trainer.epochs = 0; }),
            "epochs: expected at least 1, got 0");
  options.config.smooths_labels = true;
  EXPECT_TRUE(CheckJob(AdmittedJob(), options).ok());
  EXPECT_THAT(error([](TrainerJob& job) {
                job.task.trainer.task = "language-modeling";
                job.task.objective.metric = "perplexity";
              }),
              HasSubstr("expected neither with language-modeling, which has no classes"));
}

TEST(DataWarnings, TellsWhatIsNotLearnt) {
  TrainerJob job = AdmittedJob();
  job.task.trainer.train = "train.jsonl";
  job.task.trainer.validation = "valid.jsonl";
  TextData data;
  data.labels = {"good", "bad"};
  data.train.num_labels = 2;
  data.train.token_offsets = {0, 1};
  data.train.label_offsets = {0, 1};
  data.train.labels = {0};
  const ModelShape shape{.max_positions = 16};
  memory::TrainingConfig config;
  config.max_length = 64;
  EXPECT_THAT(DataWarnings(job, config, shape, data),
              ElementsAre("train.jsonl: no training row has the label bad"));
  data.task = TaskKind::kMultiQuerySpans;
  EXPECT_THAT(DataWarnings(job, config, shape, data), IsEmpty());
  data.warnings = {"first"};
  data.train_queries.emplace().spans = {.phrases = 9, .unplaced = 2};
  data.validation_queries.emplace();
  data.truncated = {{.path = "a", .truncated = 0, .rows = 5},
                    {.path = "b", .truncated = 1, .rows = 3}};
  EXPECT_THAT(DataWarnings(job, config, shape, data),
              ElementsAre("first",
                          "train.jsonl: 2 of 9 aspects and opinions do not occur in their texts, "
                          "letter for letter: no span is learnt for them",
                          "b: 1 of 3 rows are longer than the model's 16 positions and are "
                          "truncated (tok.max_length: 64)"));
}

memory::EstimateInput SmallModel() {
  memory::EstimateInput input;
  input.model = {.family = "bert",
                 .vocab_size = 1000,
                 .hidden_size = 64,
                 .num_layers = 2,
                 .num_heads = 4,
                 .intermediate_size = 256,
                 .max_positions = 128,
                 .type_vocab_size = 2,
                 .hidden_dropout = 0.1,
                 .attention_dropout = 0.1};
  input.config.batch_size = 64;
  input.config.max_length = 64;
  input.workload.num_labels = 3;
  input.device.kind = "cpu";
  return input;
}

MemoryPlan PlanOf(int64_t micro_batch) {
  return {.effective_batch = 64, .micro_batch = micro_batch};
}

Bytes NeedOf(int64_t micro_batch) {
  return memory::ReplayMemory(SmallModel(), PlanOf(micro_batch))->needed_limit;
}

TEST(IsAdmitted, OnlyWhereAnEstimateMayRefuse) {
  TrainerJob job = AdmittedJob();
  EXPECT_FALSE(IsAdmitted(job)) << "no limit";
  job.task.limit = MiB(1);
  EXPECT_TRUE(IsAdmitted(job));
  job.task.memory.policy = MemoryPolicy::kStrict;
  EXPECT_TRUE(IsAdmitted(job));
  job.task.memory.policy = MemoryPolicy::kOff;
  EXPECT_FALSE(IsAdmitted(job));
  job.task.memory.policy = MemoryPolicy::kPlan;
  job.task.admission = false;
  EXPECT_FALSE(IsAdmitted(job));
}

TEST(FitTrial, TakesThePlanThatFitsOrTheLargestBelow) {
  const struct {
    const char* what;
    Bytes limit;
    MemoryPolicy policy;
    int64_t micro_batch;
    bool fits;
  } rows[] = {
      {"the job's plan", NeedOf(16), MemoryPolicy::kPlan, 16, true},
      {"a byte less", NeedOf(16) - Bytes{1}, MemoryPolicy::kPlan, 15, true},
      {"a single row", NeedOf(1), MemoryPolicy::kPlan, 1, true},
      {"not even that", NeedOf(1) - Bytes{1}, MemoryPolicy::kPlan, 1, false},
      {"the whole batch or nothing", NeedOf(16), MemoryPolicy::kStrict, 16, true},
      {"nothing", NeedOf(16) - Bytes{1}, MemoryPolicy::kStrict, 64, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    TrainerJob job = AdmittedJob();
    job.task.limit = row.limit;
    job.task.memory.policy = row.policy;
    const auto planned = FitTrial(job, SmallModel(), PlanOf(16));
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_EQ(planned->fits, row.fits);
    EXPECT_EQ(planned->plan.micro_batch, row.micro_batch);
    EXPECT_EQ(planned->plan.effective_batch, 64);
    if (row.fits) continue;
    const OutOfMemory refusal = Refusal(*planned, row.limit);
    EXPECT_TRUE(refusal.predicted);
    EXPECT_EQ(refusal.limit, row.limit);
    EXPECT_EQ(refusal.needed, NeedOf(row.micro_batch));
    EXPECT_EQ(refusal.plan, planned->plan);
    EXPECT_FALSE(refusal.message.empty());
  }
}

}  // namespace
}  // namespace hpo::trainer
