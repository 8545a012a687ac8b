// A scheduler over a real database file, a clock that the test moves, and workers made of calls.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/studies/study_description.h"
#include "server/studies/trial_writer.h"
#include "tests/fakes/scripted_sampler.h"
#include "tests/fakes/simulated_clock.h"
#include "tests/fakes/temporary_database.h"

namespace hpo::server {

inline constexpr absl::Duration kTtl = absl::Seconds(60);

// A study that any trainer can serve: one parameter, no model, no estimate, and data that the
// trainer brings.
inline StudySpec PlainStudy(const std::string& name = "plain", int64_t trials = 100) {
  StudySpec spec;
  spec.name = name;
  spec.objectives = {Objective{.metric = "score", .direction = Direction::kMaximize}};
  spec.trainer.train = "train.jsonl";
  spec.trainer.validation = "valid.jsonl";
  spec.budget.trials = trials;
  spec.space.parameters = {Parameter{.name = "train.batch_size",
                                     .domain = IntDomain{.low = 1, .high = 64},
                                     .when = {},
                                     .default_value = {}}};
  return spec;
}

// PlainStudy with a space that is never used up.
inline StudySpec EndlessStudy(const std::string& name, int64_t trials) {
  StudySpec spec = PlainStudy(name, trials);
  spec.space.parameters.push_back(Parameter{.name = "train.lr",
                                            .domain = FloatDomain{.low = 0.0, .high = 1.0},
                                            .when = {},
                                            .default_value = {}});
  return spec;
}

// A study over one small BERT and its data, for workers of MakeBertWorker.
inline StudySpec BertStudy(const std::string& name = "bert") {
  StudySpec spec = PlainStudy(name);
  spec.trainer.model_init = "random";
  spec.space.parameters.push_back(
      Parameter{.name = "model.name",
                .domain = CategoricalDomain{{std::string("tiny"), std::string("absent")}},
                .when = {},
                .default_value = {}});
  return spec;
}

inline WorkerFacts MakeWorker(const std::string& name, Bytes capacity = GiB(8)) {
  WorkerFacts facts;
  facts.worker = name;
  facts.instance_key = name + "-1";
  facts.trainer = "fake-trainer";
  facts.plans = false;
  facts.device.kind = "cpu";
  facts.device.name = "test";
  facts.capacity = capacity;
  return facts;
}

inline WorkerFacts MakeBertWorker(const std::string& name, Bytes capacity = GiB(8)) {
  WorkerFacts facts = MakeWorker(name, capacity);
  facts.trainer = "hpo-trainer";
  facts.plans = true;
  ModelFacts model;
  model.name = "tiny";
  model.shape.family = "bert";
  model.shape.vocab_size = 1000;
  model.shape.hidden_size = 64;
  model.shape.num_layers = 2;
  model.shape.num_heads = 4;
  model.shape.intermediate_size = 128;
  model.shape.max_positions = 512;
  model.shape.type_vocab_size = 2;
  facts.models = {model};
  for (const char* file : {"train.jsonl", "valid.jsonl"}) {
    DataSetFacts data;
    data.name = file;
    data.digest = absl::StrCat("digest-of-", file);
    data.rows = 10;
    data.labels = {"no", "yes"};
    facts.data_sets.push_back(data);
  }
  return facts;
}

class SchedulerFixture : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }

  virtual std::unique_ptr<sampler::Sampler> MakeStudySampler(const StudySpec&) {
    return std::make_unique<ScriptedSampler>();
  }

  // Opens the scheduler on the test's file; again after Stop: a restart.
  void Start() {
    auto store = Store::Open(database_.path());
    ASSERT_TRUE(store.ok()) << store.status();
    SchedulerOptions options;
    options.lease.ttl = kTtl;
    options.tick_interval = absl::ZeroDuration();
    options.factories.make_sampler = [this](const StudySpec& spec,
                                            std::vector<sampler::PriorStudy> priors) {
      if (!priors.empty()) given_ = std::move(priors);
      return MakeStudySampler(spec);
    };
    options.factories.make_pruner = [](const StudySpec&) {
      return std::make_unique<ScriptedPruner>(0.5);
    };
    auto scheduler = TrialScheduler::Create(*std::move(store), clock_, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
  }
  void Stop() { scheduler_.reset(); }
  void Restart() {
    Stop();
    Start();
  }

  void AddStudy(const StudySpec& spec) {
    const auto created = scheduler_->commands().CreateStudy(spec, false, "");
    ASSERT_TRUE(created.ok()) << created.status();
  }

  std::string Register(const WorkerFacts& facts, const std::string& predecessor = "") {
    const auto registered = scheduler_->sessions().RegisterWorker(facts, predecessor);
    EXPECT_TRUE(registered.ok()) << registered.status();
    return registered.ok() ? registered->session : "";
  }

  AcquireResult Acquire(const std::string& session, Bytes capacity = GiB(8),
                        const std::string& request_id = "") {
    const auto acquired = scheduler_->dispatcher().AcquireTrial(
        session, request_id, absl::ZeroDuration(), capacity, nullptr);
    EXPECT_TRUE(acquired.ok()) << acquired.status();
    return acquired.ok() ? *acquired : AcquireResult{};
  }

  // Acquires a trial that must be there.
  Assignment MustAcquire(const std::string& session, Bytes capacity = GiB(8)) {
    const AcquireResult acquired = Acquire(session, capacity);
    EXPECT_TRUE(acquired.assignment.has_value()) << acquired.waiting_for;
    return acquired.assignment.value_or(Assignment{});
  }

  FinishResult Finish(const LeaseRef& lease, const TrialOutcome& outcome,
                      const std::string& request_id = "") {
    const auto finished =
        scheduler_->results().FinishTrial(request_id, FinishRequest{.lease = lease,
                                                                    .outcome = outcome,
                                                                    .memory = {},
                                                                    .final_plan = {},
                                                                    .measurements = {}});
    EXPECT_TRUE(finished.ok()) << finished.status();
    return finished.ok() ? *finished : FinishResult{};
  }

  FinishResult Complete(const LeaseRef& lease, double score) {
    return Finish(lease, Completed{.metrics = {{"score", score}}, .model_path = ""});
  }

  Directive Beat(const LeaseRef& lease) {
    const auto beat =
        scheduler_->sessions().Heartbeat("unknown", {LeaseBeat{.lease = lease}}, GiB(8));
    EXPECT_TRUE(beat.ok()) << beat.status();
    return beat.ok() ? beat->directives.front() : Directive::kContinue;
  }

  // Moves the clock in steps, ticking, while `sessions` stay alive.
  void Pass(absl::Duration time, const std::vector<std::pair<std::string, Bytes>>& sessions = {}) {
    for (absl::Duration passed; passed < time; passed += absl::Seconds(5)) {
      clock_.Advance(absl::Seconds(5));
      for (const auto& [session, capacity] : sessions) {
        EXPECT_TRUE(scheduler_->sessions().Heartbeat(session, {}, capacity).ok());
      }
      EXPECT_TRUE(scheduler_->sweeper().Tick().ok());
    }
  }

  TrialRecord Load(const std::string& study, int64_t number) {
    TrialRecord record;
    const auto runtime = scheduler_->state().studies.Find(study);
    EXPECT_TRUE(runtime.ok());
    const absl::Status read =
        ReadRows(*scheduler_->state().store, **runtime, [&](const StudyRows& rows) -> absl::Status {
          HPO_ASSIGN_OR_RETURN(record, rows.trials.LoadTrialWithAttempts(TrialNumber{number}));
          return absl::OkStatus();
        });
    EXPECT_TRUE(read.ok()) << read;
    return record;
  }

  StudyStatus Status(const std::string& study) {
    const auto status = DescribeStudy(scheduler_->state(), study);
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? *status : StudyStatus{};
  }

  // What the sampler that was made last of some was given.
  std::vector<sampler::PriorStudy> given_;
  TemporaryDatabase database_;
  SimulatedClock clock_;
  std::unique_ptr<TrialScheduler> scheduler_;
};

}  // namespace hpo::server
