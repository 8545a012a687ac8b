// Studies that start from earlier ones: what is taken, what is refused, what a restart keeps.
#include "server/studies/warm_start.h"

#include <limits>

#include "gmock/gmock.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBatch[] = "train.batch_size";

sampler::HistoryTrial Ended(int64_t number, ParamMap params, double loss) {
  return {.number = TrialNumber{number},
          .params = std::move(params),
          .state = TrialState::kCompleted,
          .losses = {loss}};
}

EarlierStudy Earlier(const std::vector<sampler::HistoryTrial>& trials) {
  EarlierStudy earlier{.spec = PlainStudy("first"), .history = {}};
  for (const sampler::HistoryTrial& trial : trials) earlier.history.Apply({1, trial});
  return earlier;
}

TEST(ChoosePrior, TakesCompletedTrialsInsideTheSpace) {
  const double inf = std::numeric_limits<double>::infinity();
  sampler::HistoryTrial failed = Ended(4, {{kBatch, int64_t{8}}}, 1.0);
  failed.state = TrialState::kFailed;
  const EarlierStudy earlier =
      Earlier({Ended(0, {{kBatch, int64_t{8}}}, 0.5), Ended(1, {{kBatch, int64_t{65}}}, 0.5),
               Ended(2, {{"other", 0.5}}, 0.5), Ended(3, {{kBatch, int64_t{8}}}, inf), failed,
               Ended(5, {{kBatch, 16.0}, {"other", 0.5}}, 0.4)});
  const StudySpec spec = PlainStudy("second");
  const auto chosen = ChoosePrior(spec, earlier);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->study, "first");
  EXPECT_THAT(chosen->trials, ElementsAre(TrialNumber{0}, TrialNumber{5}));
  EXPECT_EQ(chosen->num_skipped, 2);
  EXPECT_THAT(chosen->why_skipped, HasSubstr("trial #1: "));
  EXPECT_THAT(chosen->why_skipped, HasSubstr("65"));
  EXPECT_THAT(chosen->why_skipped, HasSubstr("[1, 64]"));

  const auto prior = ToPriorStudy(spec, earlier, *chosen);
  ASSERT_TRUE(prior.ok()) << prior.status();
  EXPECT_EQ(prior->name, "first");
  ASSERT_EQ(prior->history.trials().size(), 2u);
  EXPECT_EQ(prior->history.trials().at(TrialNumber{5}).params, (ParamMap{{kBatch, int64_t{16}}}))
      << "in this study's types, without what it does not have";
}

TEST(ToPriorStudy, EndsWhenItsCallerHasLeft) {
  const EarlierStudy earlier = Earlier({Ended(0, {{kBatch, int64_t{8}}}, 0.5)});
  const StudySpec spec = PlainStudy("second");
  const auto chosen = ChoosePrior(spec, earlier);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_TRUE(
      absl::IsCancelled(ToPriorStudy(spec, earlier, *chosen, [] { return true; }).status()));
}

TEST(ChoosePrior, WhatANewStudysConditionsLeaveOutIsNoPartOfIt) {
  StudySpec spec = PlainStudy("second");
  spec.space.parameters.push_back(Parameter{.name = "momentum",
                                            .domain = FloatDomain{},
                                            .when = {{kBatch, {int64_t{8}}}},
                                            .default_value = {}});
  const EarlierStudy earlier = Earlier({Ended(0, {{kBatch, int64_t{9}}, {"momentum", 0.5}}, 0.5),
                                        Ended(1, {{kBatch, int64_t{8}}}, 0.5)});
  const auto chosen = ChoosePrior(spec, earlier);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_THAT(chosen->trials, ElementsAre(TrialNumber{0}));
  EXPECT_THAT(chosen->why_skipped, HasSubstr("momentum"));
}

TEST(ChoosePrior, RefusesAStudyOfNoUseAndSaysWhatWasExpected) {
  const EarlierStudy good = Earlier({Ended(0, {{kBatch, int64_t{8}}}, 0.5)});
  StudySpec other_goal = PlainStudy("second");
  other_goal.objectives = {{.metric = "loss", .direction = Direction::kMinimize}};
  StudySpec other_space = PlainStudy("second");
  other_space.space.parameters[0].name = "layers";
  const struct {
    StudySpec spec;
    EarlierStudy earlier;
    const char* expected;
  } cases[] = {
      {other_goal, good, "warm_start: study 'first': expected minimize loss, got maximize score"},
      {PlainStudy("second"), Earlier({}),
       "warm_start: study 'first': expected completed trials, got none"},
      {other_space, good,
       "warm_start: study 'first': expected completed trials that are configurations of this "
       "study's space, got none among 1; trial #0: "},
  };
  for (const auto& [spec, earlier, expected] : cases) {
    const absl::Status refused = ChoosePrior(spec, earlier).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), ::testing::StartsWith(expected));
  }
}

class WarmStartTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    AddStudy(PlainStudy("first", 3));
    const std::string session = Register(MakeWorker("a"));
    for (const double score : {0.5, 0.9, 0.7}) Complete(MustAcquire(session).lease, score);
  }

  static StudySpec Second() {
    StudySpec spec = PlainStudy("second");
    spec.warm_start = {"first"};
    return spec;
  }
};

TEST_F(WarmStartTest, AStudyWhoseCallerLeavesMeanwhileIsNotThere) {
  const absl::Status left =
      scheduler_->commands()
          .CreateStudy(Second(), /*validate_only=*/false, "", [] { return true; })
          .status();
  EXPECT_TRUE(absl::IsCancelled(left)) << left;
  EXPECT_THAT(scheduler_->state().studies.Names(), ElementsAre("first"));
}

TEST_F(WarmStartTest, TheSamplerIsGivenTheTrialsAndAgainAfterARestart) {
  AddStudy(Second());
  const PriorStatus expected{.study = "first", .num_trials = 3};
  EXPECT_THAT(Status("second").priors, ElementsAre(expected));
  ASSERT_EQ(given_.size(), 1u);
  const sampler::PriorStudy before = given_.front();
  EXPECT_EQ(before.name, "first");
  EXPECT_EQ(before.history.trials().size(), 3u);
  EXPECT_EQ(before.history.trials().at(TrialNumber{1}).losses, std::vector<double>{-0.9});

  MustAcquire(Register(MakeWorker("a")));
  // What the earlier study does later is no part of what was begun with.
  StudySpec longer = PlainStudy("first", 4);
  AddStudy(longer);
  Complete(MustAcquire(Register(MakeWorker("b"))).lease, 0.95);
  given_.clear();
  Restart();
  ASSERT_EQ(given_.size(), 1u);
  EXPECT_EQ(given_.front().history, before.history);
  EXPECT_THAT(Status("second").priors, ElementsAre(expected));
  EXPECT_EQ(Status("second").last_proposal, "trial #0: scripted");
}

TEST_F(WarmStartTest, AStudyWithoutTrialsTakesWhatItsFileSaysNow) {
  AddStudy(Second());
  AddStudy(PlainStudy("second"));
  EXPECT_TRUE(Status("second").priors.empty());
  AddStudy(Second());
  EXPECT_EQ(Status("second").priors.size(), 1u);
  Restart();
  EXPECT_EQ(Status("second").priors.size(), 1u);
}

TEST_F(WarmStartTest, OnceBegunTheListStays) {
  AddStudy(Second());
  MustAcquire(Register(MakeWorker("a")));
  const absl::Status changed =
      scheduler_->commands().CreateStudy(PlainStudy("second"), false, "").status();
  EXPECT_EQ(changed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(changed.message()), HasSubstr("warm_start: stored [\"first\"]"));
}

TEST_F(WarmStartTest, AnUnknownStudyIsRefusedAndNothingIsStored) {
  StudySpec spec = Second();
  spec.warm_start = {"frist"};
  for (const bool validate_only : {true, false}) {
    const absl::Status refused =
        scheduler_->commands().CreateStudy(spec, validate_only, "").status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(refused.message(),
              "warm_start: study 'frist': expected one of first; did you mean 'first'?");
  }
  EXPECT_THAT(scheduler_->state().studies.Names(), ElementsAre("first"));
}

}  // namespace
}  // namespace hpo::server
