#include "worker/trainer/memory/stage_log.h"

#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {
namespace {

Bytes Gigabytes(double value) { return Bytes{static_cast<int64_t>(value * (1 << 30))}; }

TEST(FormatStage, HasTheFormOfTheSources) {
  const MemoryUse use{
      .live = Gigabytes(0.12), .reserved = Gigabytes(0.5), .total = Gigabytes(31.5)};
  EXPECT_EQ(FormatStage(TrialNumber{42}, "Trial Start", use),
            "Trial 42 - Trial Start: Allocated: 0.12GB (0.4%), Reserved: 0.50GB, Free: 31.38GB, "
            "Total: 31.50GB");
  EXPECT_EQ(FormatChange(TrialNumber{42}, "Training End", Gigabytes(2.45), Gigabytes(3.68)),
            "Trial 42 - Training End: Memory change: +1.23GB, Current: 3.68GB");
  EXPECT_EQ(FormatChange(TrialNumber{1}, "Training End", Gigabytes(2), Gigabytes(1.5)),
            "Trial 1 - Training End: Memory change: -0.50GB, Current: 1.50GB");
}

TEST(FormatStage, AnUnknownTotalDividesByNothing) {
  EXPECT_EQ(FormatStage(TrialNumber{0}, "OOM Error", {.live = GiB(1), .reserved = GiB(1)}),
            "Trial 0 - OOM Error: Allocated: 1.00GB (0.0%), Reserved: 1.00GB, Free: 0.00GB, "
            "Total: 0.00GB");
}

TEST(FormatOomBlock, HasTheFormOfTheSources) {
  TrainerJob job;
  job.trial = TrialNumber{42};
  job.model_name = "bert-large-uncased";
  job.task.params = {{"train.batch_size", int64_t{16}},
                     {"train.grad_accum", int64_t{4}},
                     {"tok.max_length", int64_t{384}}};
  EXPECT_EQ(FormatOomBlock(job, "GPU", "CUDA out of memory. Tried to allocate 360.00 MiB..."),
            "\n[OOM] Trial 42 exceeded GPU memory:\n"
            "  Model: bert-large-uncased\n"
            "  Batch size: 16 (effective: 64 with grad_accum=4)\n"
            "  Max length: 384\n"
            "  Error: CUDA out of memory. Tried to allocate 360.00 MiB...\n"
            "  Pruning trial to allow the sampler to learn memory constraints.\n");
  const std::string block = FormatOomBlock(job, "GPU", std::string(500, 'x'));
  EXPECT_NE(block.find("Error: " + std::string(200, 'x') + "\n"), std::string::npos);
}

TEST(StageLog, AttributesThePeakToItsPhase) {
  const TrainerJob job;
  RecordingEvents events;
  StageLog log(job, *TestDevice().memory, events);
  log.EnterPhase("forward");
  { const torch::Tensor small = at::empty({1000}); }
  log.EnterPhase("backward");
  { const torch::Tensor large = at::empty({100000}); }
  log.EnterPhase("optimizer step");
  { const torch::Tensor small = at::empty({1000}); }
  const MemoryReport report = log.Report();
  EXPECT_EQ(report.peak_phase, "backward");
  EXPECT_EQ(report.live_peak - report.baseline, Bytes{400000});
  EXPECT_EQ(report.reserved_peak, report.live_peak);
}

TEST(StageLog, AProbeIsItsOwnPeakAgainstThePrediction) {
  const TrainerJob job;
  RecordingEvents events;
  StageLog log(job, *TestDevice().memory, events);
  { const torch::Tensor large = at::empty({100000}); }
  log.StartPeak();
  { const torch::Tensor probed = at::empty({50000}); }
  EXPECT_EQ(log.Probed(KiB(300), KiB(400)) - log.baseline(), Bytes{200000});
  EXPECT_EQ(log.Report().live_peak - log.baseline(), Bytes{400000}) << "the larger one stays";
  const auto messages = events.All<MemoryMessage>();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].stage, "Probe");
  EXPECT_EQ(messages[0].peak - log.baseline(), Bytes{200000});
  EXPECT_EQ(messages[0].predicted, KiB(300));
  EXPECT_EQ(messages[0].predicted_reserved, KiB(400));
}

TEST(StageLog, WhatATrialLeavesBehindIsTold) {
  const TrainerJob job;
  RecordingEvents events;
  StageLog log(job, *TestDevice().memory, events);
  log.LeftBehind(MiB(2));
  EXPECT_EQ(log.Report().growth, MiB(2));
  EXPECT_EQ(log.Report().growth_stage, "trial") << "no stage is known to have grown";
  log.Growing({.stage = "evaluation", .bytes = MiB(3), .times = 4}, 17);
  log.LeftBehind(MiB(5));
  EXPECT_EQ(log.Report().growth_stage, "evaluation");
  const auto messages = events.All<MemoryMessage>();
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1].stage, "Growth");
  EXPECT_EQ(messages[1].growth, MiB(3));
  EXPECT_EQ(messages[1].growth_stage, "evaluation");
  EXPECT_EQ(messages[1].step, 17);
  EXPECT_EQ(messages[2].growth, MiB(5));
  EXPECT_GT(messages[2].resident, MiB(1)) << "this process's own";
}

TEST(StageLog, CountsAndTellsWhatHappened) {
  TrainerJob job;
  job.task.limit = GiB(3);
  RecordingEvents events;
  StageLog log(job, *TestDevice().memory, events);
  log.Stage("Trial Start", 0);
  log.OutOfMemoryMet({.live = MiB(5), .reserved = MiB(6), .peak = MiB(7)}, MiB(9), MiB(6), 3);
  log.Replan({.effective_batch = 8, .micro_batch = 2}, 3, "out of memory");
  const MemoryReport report = log.Report();
  EXPECT_EQ(report.num_ooms, 1);
  EXPECT_EQ(report.num_replans, 1);
  EXPECT_EQ(report.limit, GiB(3));
  EXPECT_GE(report.live_peak, MiB(7));
  const auto messages = events.All<MemoryMessage>();
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1].stage, "OOM Error");
  EXPECT_EQ(messages[1].allocated, MiB(5));
  EXPECT_EQ(messages[1].needed, MiB(9));
  EXPECT_EQ(messages[1].predicted, MiB(6));
  EXPECT_EQ(messages[1].step, 3);
  EXPECT_EQ(messages[2].stage, "replan");
  EXPECT_EQ(messages[2].plan, (MemoryPlan{.effective_batch = 8, .micro_batch = 2}));
}

}  // namespace
}  // namespace hpo::trainer
