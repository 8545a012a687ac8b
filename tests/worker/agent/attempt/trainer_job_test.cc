#include "worker/agent/attempt/trainer_job.h"

#include <string>

#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

Assignment WholeAssignment() {
  Assignment assignment;
  assignment.lease = {.trial = {.study = "criteria", .number = {12}}, .attempt = {3}, .token = "t"};
  assignment.params = {{"model.name", std::string("org/small")}, {"train.lr", 3e-5}};
  assignment.plan = {.effective_batch = 32, .micro_batch = 8};
  assignment.predicted = MiB(700);
  assignment.limit = MiB(900);
  assignment.admission = false;
  assignment.policy = MemoryPolicy::kStrict;
  assignment.allow_checkpointing = true;
  assignment.trainer.task = "text-classification";
  assignment.trainer.train = "train.jsonl";
  assignment.trainer.labels = {"no", "yes"};
  assignment.trainer.epochs = 5;
  assignment.trainer.measure_every_steps = 10;
  assignment.trainer.model_init = "random";
  assignment.objective = {.metric = "loss", .direction = Direction::kMinimize};
  assignment.seed = 77;
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
  EXPECT_EQ(job.params, assignment.params);
  EXPECT_EQ(job.task, "text-classification");
  EXPECT_EQ(job.train_path, "/data/train.jsonl");
  EXPECT_EQ(job.validation_path, "/data/valid.jsonl");
  EXPECT_EQ(job.labels, assignment.trainer.labels);
  EXPECT_EQ(job.epochs, 5);
  EXPECT_EQ(job.measure_every_steps, 10);
  EXPECT_EQ(job.model_name, "org/small");
  EXPECT_EQ(job.model_path, "/models/org/small");
  EXPECT_EQ(job.model_init, "random");
  EXPECT_EQ(job.objective, assignment.objective);
  EXPECT_EQ(job.device, "cuda:0");
  EXPECT_EQ(job.policy, MemoryPolicy::kStrict);
  EXPECT_TRUE(job.allow_checkpointing);
  EXPECT_FALSE(job.admission);
  EXPECT_EQ(job.limit, MiB(900));
  EXPECT_EQ(job.plan, assignment.plan);
  EXPECT_EQ(job.predicted, MiB(700));
  EXPECT_EQ(job.seed, 77u);
  EXPECT_EQ(job.output_dir, "/runs/12");
}

TEST(MakeJob, WhatTheDeviceNeedsForItselfIsNotTheTrainers) {
  JobPlaces places = kPlaces();
  places.base = MiB(640);
  EXPECT_EQ(MakeJob(WholeAssignment(), places).limit, MiB(260));
  EXPECT_EQ(MakeJob(WholeAssignment(), places).predicted, MiB(60));
  places.base = GiB(2);
  EXPECT_EQ(MakeJob(WholeAssignment(), places).limit, Bytes{1}) << "0 would mean no limit";
  EXPECT_EQ(MakeJob(WholeAssignment(), places).predicted, Bytes{1}) << "0 would mean none";
  Assignment unknown = WholeAssignment();
  unknown.predicted = {};
  EXPECT_EQ(MakeJob(unknown, places).predicted, Bytes{});
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
