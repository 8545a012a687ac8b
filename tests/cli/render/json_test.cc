// What `--output json` prints, byte by byte: tests/golden/output.json.
#include "cli/render/json.h"

#include <limits>
#include <sstream>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/full_values.h"
#include "tests/golden_file.h"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

const absl::Time kStart = absl::FromUnixMillis(1'760'000'000'123);

StudyStatus FullStudy() {
  StudyStatus study;
  study.spec.name = "full";
  study.spec.objectives = {{"f1", Direction::kMaximize}, {"ms", Direction::kMinimize}};
  study.spec.constraints = {{.metric = "ms", .at_most = 50.5}};
  study.spec.budget = FullBudget();
  study.spec.trainer.train = "a";
  study.spec.trainer.validation = "b";
  study.spec.space.parameters = {
      {.name = "real", .domain = FloatDomain{.low = -0.5, .high = 0.5, .step = 0.25}},
      {.name = "log", .domain = FloatDomain{.low = 1e-6, .high = 1e-4, .log = true}},
      {.name = "whole", .domain = IntDomain{.low = 1, .high = 9, .step = 2}},
      {.name = "kind", .domain = CategoricalDomain{{true, int64_t{2}, 0.5, std::string("x")}}}};
  study.finished = true;
  study.order = StudyOrder::kPause;
  study.failure = "why";
  study.counts = {.queued = 1,
                  .running = 2,
                  .completed = 3,
                  .pruned = 4,
                  .failed = 5,
                  .cancelled = 6,
                  .oom_met = 7,
                  .oom_predicted = 8,
                  .oom_recovered = 9,
                  .demonstration = 10,
                  .imported = 11,
                  .infeasible = 12};
  study.best_trial = TrialNumber{7};
  study.best_value = 0.875;
  study.front = {{.number = TrialNumber{1}, .values = {0.5, 11.0}}};
  study.wall_clock_used = absl::Milliseconds(2500);
  study.workers = {{.name = "w",
                    .device = "cuda",
                    .capacity = GiB(8),
                    .alive = true,
                    .trial = TrialId{"full", TrialNumber{3}},
                    .last_heartbeat = kStart,
                    .notice = "hot",
                    .drained = true,
                    .allocated = GiB(5),
                    .reserved = GiB(6),
                    .step = 30,
                    .stage = "Training Start",
                    .trial_started = kStart,
                    .gpus = 2},
                   {.idle_because = "paused"}};
  study.waiting_for = "a worker";
  study.blocked = true;
  study.runnable = 12;
  study.priors = {{.study = "earlier", .num_trials = 2, .num_skipped = 1, .why_skipped = "kind"}};
  study.dry_runs = DryRunCounts{.made = 5,
                                .refused = 2,
                                .uncertain = 1,
                                .failed = 1,
                                .took = absl::Seconds(40),
                                .saved = absl::Minutes(10),
                                .trouble = "w"};
  study.last_proposal = "gp";
  study.attributes = {{kNoteKey, "\"seen\""}, {kTagsKey, "[\"a\",\"b\"]"}, {"own", "{\"x\":1}"}};
  study.unreadable = "trial 4";
  study.created = kStart;
  return study;
}

Attempt FullAttempt() {
  Attempt attempt;
  attempt.number = AttemptNumber{2};
  attempt.state = AttemptState::kFinished;
  attempt.worker = "w";
  attempt.capacity = GiB(8);
  attempt.predicted = GiB(7);
  attempt.plan = {.effective_batch = 16, .micro_batch = 8};
  attempt.final_plan = FullPlan();
  attempt.memory = FullMemoryReport();
  attempt.end_note = "done";
  attempt.log_tail = "epoch 1";
  attempt.memory_records = {{.stage = "Trial Start"}, FullMemoryRecord()};
  attempt.memory_records.back().plan = FullPlan();
  attempt.started = kStart;
  attempt.ended = kStart + absl::Minutes(1);
  return attempt;
}

TrialView FullTrial() {
  TrialView view;
  Trial& trial = view.trial;
  trial.id = {"full", TrialNumber{12}};
  trial.state = TrialState::kPruned;
  trial.params = {{"train.lr", 3e-5},
                  {"train.batch_size", int64_t{16}},
                  {"flag", true},
                  {"model.name", std::string("m")}};
  trial.demonstration = true;
  trial.origin = "optuna:x#1";
  trial.budgeted = false;
  trial.admission = false;
  trial.forced_micro_batch = 4;
  trial.min_capacity = GiB(1);
  trial.outcome = FullOutOfMemory();
  trial.attempts = {Attempt{}, FullAttempt()};
  trial.last_measurement = Measurement{.step = 3, .epoch = 0.5, .metrics = {{"f1", 0.5}}};
  trial.value = 0.5;
  trial.attributes = {{kRetryOfKey, "3"}, {kTagsKey, "[\"a\"]"}, {"own", "1"}};
  trial.created = kStart;
  trial.started = kStart + absl::Seconds(1);
  trial.ended = kStart + absl::Seconds(2);
  view.measurements = {*trial.last_measurement, {}};
  view.sampler = "tpe";
  return view;
}

Trial WithOutcome(const TrialOutcome& outcome) {
  Trial trial;
  trial.state = StateOf(outcome);
  trial.outcome = outcome;
  return trial;
}

TEST(OutputJson, IsTheSameByteForByte) {
  Json all = Json::array({StudyJson(FullStudy()), StudyJson(StudyStatus()), TrialJson(FullTrial()),
                          TrialJson(Trial())});
  StudyStatus bounded;
  bounded.spec.budget.regret_bound = RegretBound{};
  all.push_back(StudyJson(bounded));
  const TrialOutcome outcomes[] = {
      Completed{.metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()}},
                .model_path = "/best"},
      StoppedByPruner{.pruner = "median", .step = 2, .metrics = {{"f1", 0.25}}},
      OutOfMemory{},
      Failed{.failure_class = FailureClass::kDiverged, .message = "loss is nan"},
      Cancelled{.reason = "by hand"},
  };
  for (const TrialOutcome& outcome : outcomes) all.push_back(TrialJson(WithOutcome(outcome)));
  Trial infeasible = WithOutcome(Completed{});
  infeasible.violation = std::numeric_limits<double>::infinity();
  all.push_back(TrialJson(infeasible));
  memory::MemoryAnswer verdict;
  verdict.estimate.weights = MiB(1);
  verdict.estimate.gradients = MiB(2);
  verdict.estimate.optimizer = MiB(3);
  verdict.estimate.activations = MiB(4);
  verdict.estimate.head = MiB(5);
  verdict.estimate.workspaces = MiB(6);
  verdict.estimate.base = MiB(7);
  verdict.estimate.live_peak = MiB(8);
  verdict.estimate.reserved_peak = MiB(9);
  verdict.estimate.needed_limit = MiB(10);
  verdict.estimate.peak_phase = "training";
  verdict.plan = FullPlan();
  verdict.fits = true;
  verdict.usable = GiB(1);
  verdict.explanation = "as it is";
  all.push_back(MemoryJson(verdict));
  std::ostringstream out;
  PrintJson(all, out);
  ExpectGolden("output.json", out.str());
}

}  // namespace
}  // namespace hpo::cli
