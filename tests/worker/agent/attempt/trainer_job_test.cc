#include "worker/agent/attempt/trainer_job.h"

#include <string>

#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

Assignment WholeAssignment() {
  Assignment assignment;
  assignment.lease = {.trial = {.study = "criteria", .number = {12}}, .attempt = {3}, .token = "t"};
  assignment.task.params = {{"model.name", std::string("org/small")}, {"train.lr", 3e-5}};
  assignment.task.plan = {.effective_batch = 32, .micro_batch = 8};
  assignment.task.predicted = MiB(700);
  assignment.task.limit = MiB(900);
  assignment.task.admission = false;
  assignment.task.memory.policy = MemoryPolicy::kStrict;
  assignment.task.memory.allow_checkpointing = true;
  assignment.task.trainer.task = "text-classification";
  assignment.task.trainer.train = "train.jsonl";
  assignment.task.trainer.labels = {"no", "yes"};
  assignment.task.trainer.epochs = 5;
  assignment.task.trainer.measure_every_steps = 10;
  assignment.task.trainer.model_init = "random";
  assignment.task.objective = {.metric = "loss", .direction = Direction::kMinimize};
  assignment.task.seed = 77;
  return assignment;
}

constexpr auto kPlaces = [] {
  return JobPlaces{.device = "cuda:0",
                   .model_path = "/models/org/small",
                   .train_path = "/data/train.jsonl",
                   .validation_path = "/data/valid.jsonl",
                   .output_dir = "/runs/12"};
};

TEST(MakeJob, CarriesTheAssignmentToThisMachine) {
  const Assignment assignment = WholeAssignment();
  const TrainerJob job = MakeJob(assignment, kPlaces());
  EXPECT_EQ(job.study, "criteria");
  EXPECT_EQ(job.trial.value, 12);
  EXPECT_EQ(job.attempt.value, 3);
  EXPECT_EQ(job.task.params, assignment.task.params);
  EXPECT_EQ(job.task.trainer.task, "text-classification");
  EXPECT_EQ(job.task.trainer.train, "/data/train.jsonl");
  EXPECT_EQ(job.task.trainer.validation, "/data/valid.jsonl");
  EXPECT_EQ(job.task.trainer.labels, assignment.task.trainer.labels);
  EXPECT_EQ(job.task.trainer.epochs, 5);
  EXPECT_EQ(job.task.trainer.measure_every_steps, 10);
  EXPECT_EQ(job.model_name, "org/small");
  EXPECT_EQ(job.model_path, "/models/org/small");
  EXPECT_EQ(job.task.trainer.model_init, "random");
  EXPECT_EQ(job.task.objective, assignment.task.objective);
  EXPECT_EQ(job.device, "cuda:0");
  EXPECT_EQ(job.task.memory.policy, MemoryPolicy::kStrict);
  EXPECT_TRUE(job.task.memory.allow_checkpointing);
  EXPECT_FALSE(job.task.admission);
  EXPECT_EQ(job.task.limit, MiB(900));
  EXPECT_EQ(job.task.plan, assignment.task.plan);
  EXPECT_EQ(job.task.predicted, MiB(700));
  EXPECT_EQ(job.task.seed, 77u);
  EXPECT_EQ(job.output_dir, "/runs/12");
}

TEST(MakeJob, WhatTheDeviceNeedsForItselfIsNotTheTrainers) {
  JobPlaces places = kPlaces();
  places.base = MiB(640);
  EXPECT_EQ(MakeJob(WholeAssignment(), places).task.limit, MiB(260));
  EXPECT_EQ(MakeJob(WholeAssignment(), places).task.predicted, MiB(60));
  places.base = GiB(2);
  EXPECT_EQ(MakeJob(WholeAssignment(), places).task.limit, Bytes{1}) << "0 would mean no limit";
  EXPECT_EQ(MakeJob(WholeAssignment(), places).task.predicted, Bytes{1}) << "0 would mean none";
  Assignment unknown = WholeAssignment();
  unknown.task.predicted = {};
  EXPECT_EQ(MakeJob(unknown, places).task.predicted, Bytes{});
}

TEST(MakeJob, SurvivesItsLine) {
  const TrainerJob job = MakeJob(WholeAssignment(), kPlaces());
  const absl::StatusOr<DownMessage> decoded = DecodeDown(EncodeDown(job));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<TrainerJob>(*decoded), job);
}

TEST(AttemptFolder, IsOnePerAttemptAndStaysInItsPlace) {
  LeaseRef lease = WholeAssignment().lease;
  EXPECT_EQ(AttemptFolder(lease), "criteria/000012-3");
  lease.attempt.value = 4;
  EXPECT_EQ(AttemptFolder(lease), "criteria/000012-4");
  lease.trial.study = "../up";
  EXPECT_EQ(AttemptFolder(lease), ".._up/000012-4");
  lease.trial.study = "..";
  EXPECT_EQ(AttemptFolder(lease), "_../000012-4");
}

}  // namespace
}  // namespace hpo::agent
