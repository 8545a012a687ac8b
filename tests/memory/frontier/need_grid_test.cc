#include "memory/frontier/need_grid.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/study/model_catalog.h"
#include "common/study_file/study_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "memory/need/device_defaults.h"
#include "tests/memory/simulated_law.h"

namespace hpo::memory {
namespace {

using ::testing::HasSubstr;

StudySpec SpaceWith(const std::string& memory, const std::string& parameters) {
  const auto study = ParseStudyFile(
      "name: s\nobjective: {metric: f1, direction: maximize}\n"
      "trainer: {train: t.jsonl, validation: v.jsonl}\nbudget: {trials: 1}\nmemory: " +
          memory + "\nparameters:\n" + parameters,
      "s.yaml", {});
  EXPECT_TRUE(study.ok()) << study.status();
  return *study;
}

constexpr char kSpace[] =
    "  model.name: {choices: [all-minilm-l6-v2, bert-base-uncased], default: all-minilm-l6-v2}\n"
    "  train.batch_size: {choices: [64, 8, 32, 16], default: 8}\n"
    "  train.grad_accum: {choices: [1, 3], default: 3}\n"
    "  tok.max_length: {int: [64, 512], step: 64, default: 128}\n"
    "  train.lr: {float: [1.0e-6, 1.0e-4], log: true, default: 2.0e-5}\n";

FitDecider GridDecider(const StudySpec& study) {
  WorkerFacts worker;
  worker.device = DefaultDevice("cuda", Bytes{});
  for (const char* name : {"all-minilm-l6-v2", "bert-base-uncased"}) {
    worker.models.push_back({.name = name, .shape = *KnownModelShape(name)});
  }
  return FitDecider(study, worker);
}

NeedGrid GridOf(const StudySpec& study, const NeedGridOptions& options) {
  const auto grid = NeedGridOf(study, GridDecider(study), options);
  EXPECT_TRUE(grid.ok()) << grid.status();
  return *grid;
}

std::vector<ParamValue> WholeValues(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

TEST(NeedGrid, SaysOfEachConfigurationWhatTheDeciderSays) {
  for (const std::string policy : {"plan", "strict"}) {
    const StudySpec study = SpaceWith("{policy: " + policy + "}", kSpace);
    const FitDecider decider = GridDecider(study);
    const NeedGridOptions options{.x = "train.batch_size",
                                  .y = "tok.max_length",
                                  .params = {{"model.name", std::string("bert-base-uncased")}},
                                  .capacities = {GiB(5), GiB(12)},
                                  .points = 4};
    const NeedGrid grid = GridOf(study, options);
    EXPECT_EQ(grid.x_values, WholeValues({8, 16, 32, 64})) << "numbers ascend";
    EXPECT_EQ(grid.y_values, WholeValues({64, 192, 384, 512}));
    EXPECT_TRUE(grid.is_estimated);
    EXPECT_EQ(grid.params, (ParamMap{{"model.name", std::string("bert-base-uncased")},
                                     {"train.grad_accum", int64_t{3}},
                                     {"train.lr", 2.0e-5}}));
    ASSERT_EQ(grid.needed.size(), 16u);
    size_t num_misfits = 0;
    for (size_t i = 0; i < grid.needed.size(); ++i) {
      ParamMap params = grid.params;
      params[grid.x] = grid.x_values[i % 4];
      params[grid.y] = grid.y_values[i / 4];
      SCOPED_TRACE(FormatParams(params));
      const TrainingConfig config = *TrainingConfigOf(params, study.trainer);
      EXPECT_EQ(grid.needed[i], RequiredBytes(**decider.Estimate(params, LiteralPlan(config))));
      for (const NeedGridGpu& gpu : grid.gpus) {
        const Fit fit = decider.Decide(params, gpu.capacity);
        EXPECT_EQ(gpu.usable, UsableBytes(gpu.capacity, decider.device(), study.memory));
        EXPECT_EQ(gpu.micro_batches[i], fit.fits ? fit.plan.micro_batch : 0);
        num_misfits += fit.fits && fit.plan == LiteralPlan(config) ? 0 : 1;
      }
    }
    EXPECT_GT(num_misfits, 2u);
    EXPECT_LT(num_misfits, 30u);
  }
}

TEST(NeedGrid, TakesTheParametersThatMemoryDependsOnMost) {
  const StudySpec study = SpaceWith("{policy: plan}", kSpace);
  const NeedGrid grid = GridOf(study, {.capacities = {GiB(24)}, .points = 2});
  EXPECT_EQ(grid.x, "model.name");
  EXPECT_EQ(grid.y, "train.batch_size");
  EXPECT_EQ(grid.x_values.size(), 2u);
  EXPECT_EQ(grid.y_values, WholeValues({8, 64}))
      << "of more choices than points, those at the ends";
  const NeedGrid other =
      GridOf(study, {.y = "train.batch_size", .capacities = {GiB(24)}, .points = 2});
  EXPECT_EQ(other.x, "model.name");
  EXPECT_EQ(other.y, "train.batch_size");
}

TEST(NeedGrid, AnUnknownModelIsNotKnownBesideOthers) {
  const StudySpec study = SpaceWith("{policy: plan}",
                                    "  model.name: {choices: [all-minilm-l6-v2, roberta-base]}\n"
                                    "  train.batch_size: {choices: [8, 16]}\n");
  const NeedGrid grid = GridOf(
      study, {.x = "model.name", .y = "train.batch_size", .capacities = {GiB(24)}, .points = 2});
  EXPECT_GT(grid.needed[0], Bytes{});
  EXPECT_EQ(grid.needed[1], Bytes{});
  EXPECT_EQ(grid.gpus[0].micro_batches, (std::vector<int64_t>{8, 0, 16, 0}));
}

// A program that no memory model knows: what it needs is 1 GiB, and 10 MiB for each row and layer.
FitDecider Learned(const StudySpec& study, size_t num_trials,
                   std::vector<NeedObservation> seen = {}) {
  for (size_t i = 0; i < num_trials; ++i) {
    const auto batch = static_cast<int64_t>(2 + 5 * i % 60);
    const auto layers = static_cast<int64_t>(1 + 7 * i % 12);
    seen.push_back(
        {.params = Sizes(batch, 64, 128, layers), .bytes = GiB(1) + MiB(10 * batch * layers)});
  }
  WorkerFacts worker;
  worker.device = DefaultDevice("cuda", Bytes{});
  worker.plans = false;
  return FitDecider(study, worker,
                    {.learned = LearnedNeed(study.space, {"batch", "layers"}, seen)});
}

TEST(NeedGrid, GoesByWhatTrialsUsedWhereNoReplayKnows) {
  StudySpec study;
  study.space = SizesSpace();
  const FitDecider decider = Learned(study, 40);
  const NeedGridOptions options{.x = "batch", .y = "layers", .capacities = {GiB(2), GiB(80)}};
  const auto grid = NeedGridOf(study, decider, options);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_FALSE(grid->is_estimated);
  ASSERT_EQ(grid->x_values.size(), 6u);
  ASSERT_EQ(grid->y_values.size(), 12u);
  for (size_t i = 0; i < grid->needed.size(); ++i) {
    const int64_t batch = std::get<int64_t>(grid->x_values[i % 6]);
    const int64_t layers = std::get<int64_t>(grid->y_values[i / 6]);
    const auto law = static_cast<double>((GiB(1) + MiB(10 * batch * layers)).count);
    EXPECT_NEAR(static_cast<double>(grid->needed[i].count) / law, 1.0, 0.15)
        << batch << " rows, " << layers << " layers";
    EXPECT_NE(grid->gpus[1].micro_batches[i], 0);
  }
  EXPECT_NE(grid->gpus[0].micro_batches.front(), 0);
  EXPECT_EQ(grid->gpus[0].micro_batches.back(), 0);
}

// Whether what a cell needs agrees with what is said of each GPU.
void ExpectVerdictsAgree(const NeedGrid& grid) {
  for (const NeedGridGpu& gpu : grid.gpus) {
    ASSERT_EQ(gpu.verdicts.size(), grid.needed.size());
    for (size_t i = 0; i < grid.needed.size(); ++i) {
      SCOPED_TRACE(FormatBytes(gpu.capacity) + ", cell " + std::to_string(i));
      switch (gpu.verdicts[i]) {
        case CellVerdict::kFits:
          EXPECT_LE(grid.needed[i], gpu.usable);
          EXPECT_GT(grid.needed[i], Bytes{});
          EXPECT_GT(gpu.micro_batches[i], 0);
          break;
        case CellVerdict::kPlanned:
          EXPECT_GT(grid.needed[i], gpu.usable);
          EXPECT_GT(gpu.micro_batches[i], 0);
          break;
        case CellVerdict::kDoesNotFit:
          EXPECT_GT(grid.needed[i], gpu.usable);
          EXPECT_EQ(gpu.micro_batches[i], 0);
          break;
        case CellVerdict::kNotKnown:
          EXPECT_EQ(gpu.micro_batches[i], 0);
      }
    }
  }
}

size_t CountOf(const NeedGridGpu& gpu, CellVerdict verdict) {
  return static_cast<size_t>(std::count(gpu.verdicts.begin(), gpu.verdicts.end(), verdict));
}

TEST(NeedGrid, WhatIsNeededAgreesWithEachGpusVerdict) {
  const std::vector<Bytes> gpus = {GiB(2), GiB(6), GiB(80)};
  const NeedGrid planned = GridOf(SpaceWith("{policy: plan}", kSpace),
                                  {.x = "train.batch_size",
                                   .y = "tok.max_length",
                                   .params = {{"model.name", std::string("bert-base-uncased")}},
                                   .capacities = gpus,
                                   .points = 4});
  ExpectVerdictsAgree(planned);
  EXPECT_GT(CountOf(planned.gpus[1], CellVerdict::kPlanned), 0u);
  StudySpec study;
  study.space = SizesSpace();
  const NeedGridOptions options{.x = "batch", .y = "layers", .capacities = gpus};
  const auto fitted = NeedGridOf(study, Learned(study, 40), options);
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  ExpectVerdictsAgree(*fitted);
  // The largest configuration ran within 4 GiB, and nobody knows how much of them it used: smaller
  // ones fit where 4 GiB are usable, whatever is fitted, and elsewhere do not.
  const auto ran = NeedGridOf(
      study,
      Learned(study, 40, {{.params = Sizes(64, 64, 128, 12), .bytes = GiB(4), .unmeasured = true}}),
      options);
  ASSERT_TRUE(ran.ok()) << ran.status();
  ExpectVerdictsAgree(*ran);
  EXPECT_GT(CountOf(ran->gpus[1], CellVerdict::kFits),
            CountOf(fitted->gpus[1], CellVerdict::kFits));
  EXPECT_GT(CountOf(ran->gpus[0], CellVerdict::kDoesNotFit), 0u);
}

TEST(NeedGrid, WhatWouldBeTriedIsNotKnown) {
  StudySpec study;
  study.space = SizesSpace();
  const FitDecider decider =
      Learned(study, 0, {{.params = Sizes(32, 64, 128, 6), .bytes = GiB(4), .censored = true}});
  const auto grid = NeedGridOf(study, decider,
                               {.x = "batch",
                                .y = "layers",
                                .params = {{"length", int64_t{64}}, {"hidden", int64_t{128}}},
                                .capacities = {GiB(4), GiB(80)}});
  ASSERT_TRUE(grid.ok()) << grid.status();
  ExpectVerdictsAgree(*grid);
  EXPECT_EQ(CountOf(grid->gpus[0], CellVerdict::kDoesNotFit), 2u * 7u);
  EXPECT_EQ(CountOf(grid->gpus[0], CellVerdict::kNotKnown), 72u - 14u);
  EXPECT_EQ(CountOf(grid->gpus[1], CellVerdict::kNotKnown), 72u);
}

TEST(NeedGrid, SaysThatNothingIsKnown) {
  StudySpec study;
  study.space = SizesSpace();
  const auto grid =
      NeedGridOf(study, Learned(study, 0), {.x = "batch", .y = "layers", .capacities = {GiB(2)}});
  EXPECT_TRUE(absl::IsFailedPrecondition(grid.status())) << grid.status();
  EXPECT_THAT(std::string(grid.status().message()), HasSubstr("nothing is known of the memory"));
  study.memory.policy = MemoryPolicy::kOff;
  EXPECT_TRUE(absl::IsFailedPrecondition(
      NeedGridOf(study, Learned(study, 40), {.x = "batch", .y = "layers", .capacities = {GiB(2)}})
          .status()));
}

TEST(NeedGrid, NamesWhatIsWrong) {
  const StudySpec study = SpaceWith("{policy: plan}", kSpace);
  const std::vector<Bytes> gpus = {GiB(24)};
  const std::pair<NeedGridOptions, std::string> cases[] = {
      {{.x = "train.batch_size", .y = "tok.max_length"}, "expected at least one GPU's memory"},
      {{.x = "train.batch", .capacities = gpus}, "got 'train.batch'"},
      {{.x = "train.lr", .y = "train.lr", .capacities = gpus}, "another parameter than x"},
      {{.params = {{"lr", 0.1}}, .capacities = gpus}, "got 'lr'"},
      {{.x = "train.batch_size",
        .y = "tok.max_length",
        .params = {{"train.grad_accum", std::string("many")}},
        .capacities = gpus},
       "train.grad_accum"},
  };
  for (const auto& [options, expected] : cases) {
    const absl::Status status = NeedGridOf(study, GridDecider(study), options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(expected));
  }
  const StudySpec narrow = SpaceWith("{policy: plan}", "  train.batch_size: {choices: [8, 16]}\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      NeedGridOf(narrow, GridDecider(narrow), {.capacities = gpus}).status()));
}

}  // namespace
}  // namespace hpo::memory
