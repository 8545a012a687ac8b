// Ranges are edited: what is proposed from then on, what becomes of trials outside, and that a
// restart knows the same.
#include <gmock/gmock.h>

#include "sampler/factory/make_sampler.h"
#include "server/api/study_api.h"
#include "server/trials/typed_params.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Parameter Named(const std::string& name, Domain domain) {
  return {.name = name, .domain = std::move(domain), .when = {}, .default_value = {}};
}

// With the real samplers.
using Ranges = std::map<std::string, Domain>;

class EditStudyTest : public SchedulerFixture {
 protected:
  std::unique_ptr<sampler::Sampler> MakeStudySampler(const StudySpec& spec) override {
    return sampler::MakeSampler(spec);
  }

  StudyApi Api() { return StudyApi(*scheduler_); }

  static StudySpec NumbersStudy(const std::string& sampler) {
    StudySpec spec = PlainStudy();
    spec.sampler.type = sampler;
    spec.sampler.startup_trials = 4;
    const bool grid = sampler == "grid";
    spec.space.parameters = {
        Named("x", grid ? Domain(FloatDomain{.low = 0.0, .high = 8.0, .step = 0.5})
                        : Domain(FloatDomain{.low = 1e-4, .high = 1.0, .log = true})),
        Named("n", IntDomain{.low = 1, .high = 16})};
    if (sampler != "cma-es") {
      spec.space.parameters.push_back(
          Named("c", CategoricalDomain{{std::string("a"), std::string("b"), std::string("d")}}));
    }
    return spec;
  }

  // Values that the space before does not have are mixed with some that it has.
  static std::map<std::string, Domain> OtherRanges(const std::string& sampler) {
    std::map<std::string, Domain> ranges = {
        {"x", sampler == "grid" ? Domain(FloatDomain{.low = 2.0, .high = 12.0, .step = 0.5})
                                : Domain(FloatDomain{.low = 1e-2, .high = 10.0, .log = true})},
        {"n", IntDomain{.low = 8, .high = 32}}};
    if (sampler != "cma-es") {
      ranges["c"] = CategoricalDomain{{std::string("b"), std::string("e")}};
    }
    return ranges;
  }

  void Run(int num_trials) {
    const std::string session = Register(MakeWorker("a"));
    for (int i = 0; i < num_trials; ++i) {
      const Assignment given = MustAcquire(session);
      const double x = std::get<double>(given.task.params.at("x"));
      const auto n = static_cast<double>(std::get<int64_t>(given.task.params.at("n")));
      Complete(given.lease, x - 0.01 * n);
    }
  }

  ParamMap NextProposal() {
    StudyRuntime& study = **scheduler_->state().studies.Find("plain");
    absl::MutexLock lock(&study.sampler.propose_mutex());
    const auto suggestion = study.sampler.Suggest(study.spec(), [&](const sampler::History&) {
      return sampler::AskContext{.number = study.next_number(),
                                 .space = study.spec().space,
                                 .capacity = GiB(8),
                                 .feasibility = {}};
    });
    EXPECT_TRUE(suggestion.ok()) << suggestion.status();
    return suggestion.ok() ? suggestion->params : ParamMap{};
  }
};

TEST_F(EditStudyTest, EverySamplerGoesOnWithinTheNewRangesAndKnowsTheSameAfterARestart) {
  for (const char* sampler : {"auto", "tpe", "tpe-joint", "tpe-group", "tpe-univariate", "gp",
                              "cma-es", "random", "qmc", "grid"}) {
    SCOPED_TRACE(sampler);
    AddStudy(NumbersStudy(sampler));
    Run(14);
    const auto edited = Api().EditStudy("plain", OtherRanges(sampler));
    ASSERT_TRUE(edited.ok()) << edited.status();
    EXPECT_GT(edited->num_outside, 0);
    EXPECT_EQ(Status("plain").counts.completed, 14) << "what lies outside stays";
    const SearchSpace space = Status("plain").spec.space;
    for (int i = 0; i < 12; ++i) {
      Run(1);
      const Trial trial = Load("plain", 14 + i).trial;
      EXPECT_TRUE(IsWithin(space, trial.params)) << FormatParams(trial.params);
    }
    const ParamMap next = NextProposal();
    Restart();
    EXPECT_EQ(NextProposal(), next);
    EXPECT_EQ(Status("plain").spec.space, space);
    ASSERT_TRUE(Api().DeleteStudy("plain", "").ok());
  }
}

TEST_F(EditStudyTest, WhatWaitsOutsideIsCancelledAndWhatHasBegunGoesOn) {
  AddStudy(NumbersStudy("random"));
  const std::string session = Register(MakeWorker("a"));
  const auto enqueue = [&](double x) {
    const ParamMap params = {{"x", x}, {"n", int64_t{9}}, {"c", std::string("b")}};
    ASSERT_TRUE(Api().EnqueueTrial("plain", {.params = params}, "").ok());
  };
  enqueue(0.001);
  const LeaseRef begun = MustAcquire(session).lease;
  enqueue(0.002);
  enqueue(0.5);
  const LeaseRef given_back = begun;
  const auto tried = Api().EditStudy("plain", OtherRanges("random"), /*validate_only=*/true);
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_THAT(tried->cancelled, ElementsAre(TrialNumber{1})) << "what would be cancelled";
  EXPECT_EQ(Load("plain", 1).trial.state, TrialState::kQueued) << "nothing is stored";
  const auto edited = Api().EditStudy("plain", OtherRanges("random"));
  ASSERT_TRUE(edited.ok()) << edited.status();
  EXPECT_THAT(edited->cancelled, ElementsAre(TrialNumber{1}));
  EXPECT_EQ(edited->num_outside, 2);
  EXPECT_EQ(Load("plain", 1).trial.state, TrialState::kCancelled);
  EXPECT_EQ(Load("plain", 2).trial.state, TrialState::kQueued);
  EXPECT_EQ(Beat(begun), Directive::kContinue) << "its lease is the same";
  ASSERT_TRUE(scheduler_->results()
                  .ReleaseTrial("id", {.lease = given_back, .reason = ReleaseReason::kPreempted})
                  .ok());
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kQueued);
  EXPECT_EQ(MustAcquire(session).lease.trial.number, TrialNumber{0});
  Restart();
  EXPECT_EQ(Status("plain").counts.cancelled, 1);
}

TEST_F(EditStudyTest, TellsWhatChangesBeforeAndAfter) {
  AddStudy(NumbersStudy("random"));
  Run(3);
  const Ranges ranges = {{"n", IntDomain{.low = 8, .high = 32}}};
  const StudySpec before = Status("plain").spec;
  const auto tried = Api().EditStudy("plain", ranges, /*validate_only=*/true);
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_THAT(tried->before, ElementsAre(Pair("n", Domain(IntDomain{.low = 1, .high = 16}))));
  EXPECT_THAT(tried->after, ElementsAre(Pair("n", ranges.at("n"))));
  EXPECT_EQ(Status("plain").spec, before) << "nothing is stored";
  ASSERT_TRUE(Api().EditStudy("plain", ranges).ok());
  const auto again = Api().EditStudy("plain", ranges);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->before.empty()) << "repeating it changes nothing";
}

TEST_F(EditStudyTest, AFileChangesRangesAndNothingElse) {
  StudySpec spec = NumbersStudy("random");
  AddStudy(spec);
  Run(2);
  ASSERT_TRUE(Api().UpdateStudy("plain", {.trials = 200}, "").ok());
  spec.space.parameters[1].domain = IntDomain{.low = 4, .high = 64};
  ASSERT_TRUE(Api().EditStudy("plain", spec).ok());
  EXPECT_EQ(Status("plain").spec.space, spec.space);
  EXPECT_EQ(Status("plain").spec.budget.trials, 200) << "what was extended stays";
  AddStudy(spec);  // the server is started with the changed file
  EXPECT_EQ(Status("plain").spec.budget.trials, 200);

  const std::pair<std::function<void(StudySpec&)>, const char*> cases[] = {
      {[](StudySpec& file) { file.objectives[0].direction = Direction::kMinimize; },
       "objective[0].direction"},
      {[](StudySpec& file) { file.sampler.seed = 7; }, "sampler.seed"},
      {[](StudySpec& file) { file.space.parameters.pop_back(); }, "parameters.c"},
      {[](StudySpec& file) { file.space.parameters[1].domain = FloatDomain{}; },
       "parameter n: expected the kind that its trials have, [4, 64], got [0, 1]"},
  };
  for (const auto& [change, why] : cases) {
    StudySpec file = spec;
    change(file);
    const auto refused = Api().EditStudy("plain", file);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
    EXPECT_THAT(refused.status().message(), HasSubstr(why));
  }
}

TEST_F(EditStudyTest, ASpaceThatIsNoneIsRefused) {
  AddStudy(NumbersStudy("random"));
  Run(1);
  EXPECT_TRUE(
      absl::IsInvalidArgument(Api().EditStudy("plain", Ranges{{"y", IntDomain{}}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Api().EditStudy("plain", Ranges{{"n", IntDomain{.low = 5, .high = 4}}}).status()));
  EXPECT_TRUE(absl::IsNotFound(Api().EditStudy("other", {}).status()));
}

TEST_F(EditStudyTest, NarrowingsAndDefaultsFollowARange) {
  StudySpec spec = NumbersStudy("random");
  spec.space.parameters[1].default_value = int64_t{2};
  spec.space.narrowings = {{.when = {{.name = "c", .values = {std::string("a")}}},
                            .name = "n",
                            .domain = IntDomain{.low = 2, .high = 12}}};
  spec.space.parameters = {spec.space.parameters[2], spec.space.parameters[0],
                           spec.space.parameters[1]};
  AddStudy(spec);
  Run(1);
  ASSERT_TRUE(Api().EditStudy("plain", Ranges{{"n", IntDomain{.low = 6, .high = 32}}}).ok());
  const SearchSpace space = Status("plain").spec.space;
  EXPECT_EQ(space.narrowings[0].domain, Domain(IntDomain{.low = 6, .high = 12}));
  EXPECT_EQ(space.Find("n")->default_value, std::nullopt);
  const auto refused = Api().EditStudy("plain", Ranges{{"n", IntDomain{.low = 20, .high = 32}}});
  EXPECT_THAT(refused.status().message(), HasSubstr("leaves something of [6, 12], to which"));
}

TEST_F(EditStudyTest, AWorkerThatRunsNoticesNothing) {
  AddStudy(NumbersStudy("tpe"));
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  ASSERT_TRUE(Api().EditStudy("plain", OtherRanges("tpe")).ok());
  const AttemptReport report{.lease = lease,
                             .measurements = {{.step = 1, .metrics = {{"score", 0.9}}}}};
  ASSERT_TRUE(scheduler_->results().ReportMeasurements(report).ok());
  EXPECT_TRUE(Complete(lease, 0.9).stored);
  EXPECT_EQ(Status("plain").best_value, 0.9) << "best of all, wherever it lies";
}

}  // namespace
}  // namespace hpo::server
