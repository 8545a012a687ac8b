
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cli/render/json.h"
#include "cli/render/memory_text.h"
#include "cli/render/study_text.h"
#include "cli/render/trial_text.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

StudyStatus ShownStudy() {
  StudyStatus study;
  study.spec.name = "criteria";
  study.spec.objectives = {{.metric = "macro_f1"}};
  study.spec.budget = {.trials = 12, .wall_clock = absl::Hours(2)};
  study.spec.space.parameters = {
      {.name = "head.layers", .domain = IntDomain{.low = 0, .high = 3}},
      {.name = "head.size_1",
       .domain = IntDomain{.low = 64, .high = 512, .step = 64},
       .when = {{.name = "head.layers", .values = {int64_t{1}, int64_t{2}}}}}};
  study.counts = {.queued = 1,
                  .running = 1,
                  .completed = 5,
                  .pruned = 2,
                  .oom_met = 2,
                  .oom_predicted = 1,
                  .oom_recovered = 1,
                  .demonstration = 1};
  study.best_trial = TrialNumber{4};
  study.best_value = 0.713;
  study.wall_clock_used = absl::Seconds(190);
  study.workers = {{.name = "host:gpu0",
                    .device = "H200",
                    .capacity = GiB(8),
                    .alive = true,
                    .trial = TrialId{.study = "criteria", .number = TrialNumber{8}}},
                   {.name = "host:gpu1", .device = "H200", .capacity = GiB(8), .alive = true},
                   {.name = "old", .device = "cpu", .capacity = GiB(1)}};
  return study;
}

TrialView OomView() {
  Attempt attempt{.number = AttemptNumber{1},
                  .state = AttemptState::kFinished,
                  .worker = "host:gpu0",
                  .capacity = GiB(8),
                  .predicted = GiB(6),
                  .plan = {.effective_batch = 64, .micro_batch = 16},
                  .final_plan = MemoryPlan{.effective_batch = 64, .micro_batch = 8},
                  .memory = MemoryReport{.live_peak = GiB(7),
                                         .limit = GiB(8),
                                         .num_ooms = 2,
                                         .growth = MiB(3),
                                         .growth_stage = "evaluation"},
                  .memory_records = {{.stage = "Trial Start",
                                      .allocated = MiB(4),
                                      .free = GiB(7),
                                      .total = GiB(8),
                                      .resident = MiB(900)},
                                     {.stage = "replan",
                                      .allocated = MiB(1),
                                      .plan = MemoryPlan{.effective_batch = 64, .micro_batch = 8},
                                      .step = 12,
                                      .sequence = 1},
                                     {.stage = "Growth",
                                      .allocated = MiB(6),
                                      .step = 20,
                                      .growth = MiB(3),
                                      .growth_stage = "evaluation",
                                      .sequence = 2}},
                  .started = absl::FromUnixSeconds(1'700'000'000),
                  .ended = absl::FromUnixSeconds(1'700'000'190)};
  Trial trial{.id = {.study = "criteria", .number = TrialNumber{7}},
              .state = TrialState::kPruned,
              .params = {{"model.name", std::string("bert\x1b[2J")},
                         {"train.batch_size", int64_t{16}},
                         {"train.lr", 3e-5}},
              .outcome = OutOfMemory{.requested = MiB(20),
                                     .peak = GiB(7),
                                     .limit = GiB(8),
                                     .needed = GiB(6),
                                     .phase = "backward",
                                     .step = 12,
                                     .plan = {.effective_batch = 64, .micro_batch = 8},
                                     .message = "out of memory",
                                     .traceback = "first line\nsecond line"},
              .attempts = {attempt}};
  return TrialView{.trial = trial,
                   .measurements = {{.step = 10, .epoch = 0.5, .metrics = {{"macro_f1", 0.4}}}},
                   .sampler = "tpe"};
}

TEST(Text, AStudyAtAGlance) {
  const std::string text = StudyText(ShownStudy(), 0);
  for (const char* part :
       {"study       criteria (running)\n", "objective   maximize macro_f1\n",
        "trials      7 of 12: 5 completed, 2 pruned, 0 failed, 1 running, 1 queued; 1 "
        "demonstration, counted apart\n",
        "memory      OOM 2 met (1 recovered), 1 predicted\n", "best        0.713 (#4)\n",
        "time        3m10s of 2h\n", "host:gpu0  H200    8.00 GiB  trial #8 of criteria\n",
        "host:gpu1  H200    8.00 GiB  idle\n", "old        cpu     1.00 GiB  gone\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Text, TheFrontOfSeveralObjectivesStandsForTheBest) {
  StudyStatus study = ShownStudy();
  study.spec.objectives = {{.metric = "f1"}, {.metric = "ms"}};
  for (int i = 0; i < 7; ++i) {
    study.front.push_back({.number = TrialNumber{i}, .values = {0.98231 + 1e-5 * i, 10.0 + i}});
  }
  const std::string text = StudyText(study, 0);
  EXPECT_THAT(text, HasSubstr("front       #0 f1 0.98231, ms 10\n"
                              "            #1 f1 0.98232, ms 11\n"));
  EXPECT_THAT(text, HasSubstr("            and 2 more: hpo best --study criteria\n"));
  EXPECT_THAT(text, Not(HasSubstr("best        ")));
  EXPECT_THAT(RenderStudyTable({study}, 0), HasSubstr("front #0 #1 #2 #3 and 3 more"));
  EXPECT_EQ(StudyJson(study)["front"][1]["values"]["ms"], 11.0);
}

TEST(Text, AStudyThatWaitsSaysForWhat) {
  StudyStatus study = ShownStudy();
  study.counts.running = 0;
  study.waiting_for = "no worker is connected; run: hpo-worker --gpu 0";
  EXPECT_THAT(StudyText(study, 0), HasSubstr("criteria (waiting)"));
  EXPECT_THAT(StudyText(study, 0),
              HasSubstr("waits       no worker is connected; run: hpo-worker --gpu 0\n"));
  study.finished = true;
  EXPECT_THAT(RenderStudyTable({study}, 0), HasSubstr("finished"));
  study.waiting_for = "no progress in the 9 trials since trial 3";
  EXPECT_THAT(StudyText(study, 0), HasSubstr("ended       no progress in the 9 trials since"));
}

TEST(Text, AWarmStartSaysWhatCountsAndWhatItWeighs) {
  StudyStatus study = ShownStudy();
  EXPECT_THAT(StudyText(study, 0), Not(HasSubstr("warm start")));
  study.priors = {{.study = "first", .num_trials = 40},
                  {.study = "second",
                   .num_trials = 7,
                   .num_skipped = 2,
                   .why_skipped = "trial #3: train.lr: expected [1e-06, 0.0001]"}};
  study.last_proposal = "trial #31: auto: gp, prior first 0.71 (31 trials), score -2.1";
  const std::string text = StudyText(study, 0);
  for (const char* part :
       {"warm start  first, 40 trials\n",
        "warm start  second, 7 trials; 2 lie outside this space: trial #3: train.lr: expected "
        "[1e-06, "
        "0.0001]\n",
        "proposed    trial #31: auto: gp, prior first 0.71 (31 trials), score -2.1\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Text, WhatViolatesAConstraintIsSaid) {
  StudyStatus study = ShownStudy();
  EXPECT_THAT(StudyText(study, 0), Not(HasSubstr("constraints")));
  study.spec.constraints = {{.metric = "ms", .at_most = 50.0}, {.metric = "gain", .at_least = 0.5}};
  study.counts.infeasible = 2;
  EXPECT_THAT(StudyText(study, 0),
              HasSubstr("constraints ms at most 50, gain at least 0.5; 2 of 5 completed do not "
                        "keep them\n"));
  study.best_violation = 0.25;
  EXPECT_THAT(StudyText(study, 0), HasSubstr("best        0.713 (#4, infeasible)\n"));
  EXPECT_THAT(StudyText(study, 0),
              HasSubstr("gain at least 0.5; no trial keeps them yet, #4 is the nearest\n"));
  EXPECT_EQ(StudyJson(study)["best_feasible"], false);

  TrialView view;
  view.trial.state = TrialState::kCompleted;
  view.trial.outcome = Completed{.metrics = {{"ms", 60.0}}};
  view.trial.violation = std::numeric_limits<double>::infinity();
  const std::string text = TrialText(view, study.spec.constraints, 0);
  EXPECT_THAT(text, HasSubstr("COMPLETED (infeasible)"));
  EXPECT_THAT(text, HasSubstr("violates  ms at most 50: reported 60\n"));
  EXPECT_THAT(text, HasSubstr("violates  gain at least 0.5: not reported\n"));
  EXPECT_EQ(TrialJson(view.trial)["feasible"], false);
  EXPECT_TRUE(TrialJson(view.trial)["violation"].is_null());
  EXPECT_THAT(BestText({view.trial}, study, 0), HasSubstr("no trial keeps the constraints yet"));
}

TEST(Text, TheSpaceNamesConditions) {
  EXPECT_EQ(SpaceTable(ShownStudy().spec.space, 0),
            "PARAMETER    VALUES             ONLY WHEN\n"
            "head.layers  [0, 3]\n"
            "head.size_1  [64, 512] step 64  head.layers is 1 or 2\n");
}

TEST(Text, TheSpaceShowsItsNarrowings) {
  SearchSpace space = ShownStudy().spec.space;
  space.narrowings = {{.when = {{.name = "model.class", .values = {std::string("heavy")}}},
                       .name = "head.layers",
                       .domain = IntDomain{.low = 0, .high = 1}}};
  EXPECT_THAT(SpaceTable(space, 0), HasSubstr("\n\nNARROWED     TO      WHEN\n"
                                              "head.layers  [0, 1]  model.class is heavy\n"));
}

TEST(Text, APrunedTrialSaysWhyWithEveryByte) {
  const std::string text = TrialText(OomView(), {}, 0);
  for (const char* part :
       {"#7 of criteria: PRUNED (OUT_OF_MEMORY)",
        "out of memory in backward at step 12: wanted 20.00 MiB more at a peak of 7.00 GiB, "
        "allowed "
        "8.00 GiB",
        "proposed  by tpe", "train.lr=3e-05", "64 = 4 x 16, then 64 = 8 x 8", "6.00 GiB",
        "  requested   20.00 MiB\n", "  predicted   6.00 GiB\n", "\"effective_batch_size\"",
        "  first line\n  second line\n", "macro_f1 0.4", "3m10s"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(Text, ATracebackKeepsItsLines) {
  TrialView view = OomView();
  view.trial.outcome = Failed{.failure_class = FailureClass::kBadData,
                              .message = "Traceback:\n  File \"train.py\"\nKeyError: 'x\x1b'\n"};
  EXPECT_THAT(TrialText(view, {}, 0), HasSubstr("Traceback:\n"
                                                "    File \"train.py\"\n"
                                                "  KeyError: 'x?'\n"));
}

TEST(Text, ATrainerWithoutABatchShowsNone) {
  TrialView view = OomView();
  view.trial.params.erase("train.batch_size");
  EXPECT_THAT(TrialText(view, {}, 0), HasSubstr("64 = 4 x 16"));
  view.trial.attempts[0].plan = MemoryPlan();
  view.trial.attempts[0].final_plan.reset();
  std::get<OutOfMemory>(*view.trial.outcome).plan = MemoryPlan();
  const std::string text = TrialText(view, {}, 0);
  EXPECT_THAT(text, Not(HasSubstr("1 = 1 x 1")));
  EXPECT_THAT(text, HasSubstr("  batch       -\n"));
}

TEST(Text, MemoryIsShownByStageWithItsChangeAndLeaks) {
  const std::string text = TrialText(OomView(), {}, 0);
  EXPECT_THAT(text,
              HasSubstr("ATTEMPT  MEMORY AT    STEP  ALLOCATED     CHANGE  RESERVED      FREE "
                        "    TOTAL  PEAK        HOST  NOTE\n"
                        "      1  Trial Start     0   4.00 MiB          -         -  7.00 GiB "
                        " 8.00 GiB     -  900.00 MiB\n"));
  EXPECT_THAT(text, HasSubstr("-3.00 MiB"));
  EXPECT_THAT(text, HasSubstr("batch 64 = 8 x 8\n"));
  EXPECT_THAT(text, HasSubstr("+5.00 MiB"));
  EXPECT_THAT(text, HasSubstr("3.00 MiB did not come back: evaluation\n"));
  EXPECT_THAT(text, HasSubstr("leak      attempt 1: 3.00 MiB did not come back, from stage "
                              "'evaluation'\n"));
  TrialView quiet = OomView();
  quiet.trial.attempts[0].memory_records.clear();
  quiet.trial.attempts[0].memory->growth = Bytes{};
  EXPECT_THAT(TrialText(quiet, {}, 0), Not(HasSubstr("MEMORY AT")));
  EXPECT_THAT(TrialText(quiet, {}, 0), Not(HasSubstr("leak")));
}

TEST(Text, TheBestTrialIsReadyToPaste) {
  Trial best{.id = {.study = "criteria", .number = TrialNumber{4}},
             .state = TrialState::kCompleted,
             .params = {{"train.lr", 3e-5}},
             .outcome = Completed{.metrics = {{"macro_f1", 0.713}}, .model_path = "/out/4/best"},
             .value = 0.713};
  EXPECT_EQ(BestText({best}, ShownStudy(), 0),
            "best trial of criteria: #4, macro_f1 0.713\n"
            "  train.lr=3e-05\n"
            "model folder: /out/4/best\n");
  EXPECT_THAT(BestText({best, best}, ShownStudy(), 0), HasSubstr("TRIAL  STATE      macro_f1"));
}

TEST(Text, AnEstimateEndsWithAVerdict) {
  memory::MemoryAnswer verdict{.estimate = {.weights = MiB(88), .needed_limit = GiB(9)},
                               .plan = {.effective_batch = 64, .micro_batch = 1},
                               .usable = GiB(8),
                               .explanation = "needs 9.00 GiB at micro-batch 1, allowed 8.00 GiB"};
  verdict.estimate.peak_phase = "backward";
  const std::string text = MemoryText(verdict, 0);
  EXPECT_THAT(text, HasSubstr("weights        88.00 MiB\n"));
  EXPECT_THAT(text, HasSubstr("\ndoes not fit, peak in backward, batch 64 = 64 x 1\n"
                              "needs 9.00 GiB at micro-batch 1, allowed 8.00 GiB\n"));
  verdict.fits = true;
  EXPECT_THAT(MemoryText(verdict, 0), HasSubstr("\nfits, peak in"));
}

TEST(Json, AStudyHasTypedValues) {
  const nlohmann::ordered_json json = StudyJson(ShownStudy());
  EXPECT_EQ(json["name"], "criteria");
  EXPECT_EQ(json["state"], "ACTIVE");
  EXPECT_EQ(json["budget"]["trials"], 12);
  EXPECT_EQ(json["budget"]["wall_clock_seconds"], 7200.0);
  EXPECT_EQ(json["counts"]["oom_met"], 2);
  EXPECT_EQ(json["best_value"], 0.713);
  EXPECT_EQ(json["workers"][0]["trial"], 8);
  EXPECT_TRUE(json["workers"][1]["trial"].is_null());
  EXPECT_EQ(json["parameters"]["head.size_1"]["step"], 64);
  EXPECT_TRUE(json["created"].is_null());
}

TEST(Json, ATrialHasTypedValuesAndNullForUnknown) {
  const nlohmann::ordered_json json = TrialJson(OomView());
  EXPECT_EQ(json["number"], 7);
  EXPECT_EQ(json["prune_reason"], "OUT_OF_MEMORY");
  EXPECT_TRUE(json["params"]["train.batch_size"].is_number_integer());
  EXPECT_TRUE(json["params"]["train.lr"].is_number_float());
  EXPECT_EQ(json["outcome"]["kind"], "out_of_memory");
  EXPECT_EQ(json["outcome"]["requested_bytes"], MiB(20).count);
  EXPECT_EQ(json["outcome"]["oom_config"]["batch_size"], 16);
  EXPECT_EQ(json["attempts"][0]["plan"]["micro_batch"], 16);
  EXPECT_EQ(json["attempts"][0]["memory"]["live_peak_bytes"], GiB(7).count);
  EXPECT_TRUE(json["attempts"][0]["memory"]["device_peak_bytes"].is_null());
  const nlohmann::ordered_json& stages = json["attempts"][0]["stages"];
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_TRUE(stages[0]["change_bytes"].is_null());
  EXPECT_EQ(stages[0]["resident_bytes"], MiB(900).count);
  EXPECT_EQ(stages[1]["change_bytes"], -MiB(3).count);
  EXPECT_EQ(stages[1]["plan"]["micro_batch"], 8);
  EXPECT_EQ(stages[2]["growth_bytes"], MiB(3).count);
  EXPECT_EQ(stages[2]["growth_stage"], "evaluation");
  EXPECT_EQ(json["attempts"][0]["started"], "2023-11-14T22:13:20.000Z");
  EXPECT_EQ(json["measurements"][0]["metrics"]["macro_f1"], 0.4);
  EXPECT_TRUE(json["value"].is_null());
}

TEST(Json, EveryOutcomeHasAKind) {
  const std::pair<TrialOutcome, const char*> cases[] = {
      {Completed{}, "completed"},       {StoppedByPruner{}, "stopped_by_pruner"},
      {OutOfMemory{}, "out_of_memory"}, {Failed{}, "failed"},
      {Cancelled{}, "cancelled"},
  };
  for (const auto& [outcome, kind] : cases) {
    EXPECT_EQ(TrialJson(Trial{.outcome = outcome})["outcome"]["kind"], kind);
  }
  EXPECT_TRUE(TrialJson(Trial())["outcome"].is_null());
}

}  // namespace
}  // namespace hpo::cli
