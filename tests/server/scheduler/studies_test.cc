// Studies are added and changed, trials enqueued.
#include "gmock/gmock.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

class StudiesTest : public SchedulerFixture {};

TEST_F(StudiesTest, AnotherSpecReplacesAStudyWithoutTrialsOnly) {
  AddStudy(PlainStudy());
  StudySpec changed = PlainStudy();
  changed.objectives.front().metric = "accuracy";
  EXPECT_FALSE(scheduler_->commands().CreateStudy(changed, false, "").value());
  EXPECT_EQ(Status("plain").spec, changed);
  MustAcquire(Register(MakeWorker("a")));
  const auto refused = scheduler_->commands().CreateStudy(PlainStudy(), false, "");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("accuracy"));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      scheduler_->commands().CreateStudy(PlainStudy(), /*validate_only=*/true, "").status()));
  changed.budget.trials = 7;
  EXPECT_FALSE(scheduler_->commands().CreateStudy(changed, false, "").value());
  Restart();
  EXPECT_EQ(Status("plain").spec, changed);
}

TEST_F(StudiesTest, ValidateOnlyStoresNothing) {
  EXPECT_TRUE(scheduler_->commands().CreateStudy(PlainStudy(), /*validate_only=*/true, "").ok());
  EXPECT_TRUE(scheduler_->state().studies.Names().empty());
  StudySpec broken = PlainStudy();
  broken.objectives.clear();
  EXPECT_TRUE(
      absl::IsInvalidArgument(scheduler_->commands().CreateStudy(broken, true, "").status()));
}

TEST_F(StudiesTest, CreationIsIdempotentByRequestId) {
  EXPECT_TRUE(scheduler_->commands().CreateStudy(PlainStudy(), false, "create").value());
  EXPECT_TRUE(scheduler_->commands().CreateStudy(PlainStudy(), false, "create").value());
  EXPECT_EQ(scheduler_->state().studies.Names().size(), 1u);
  EXPECT_EQ(
      scheduler_->commands().CreateStudy(PlainStudy("other"), false, "create").status().code(),
      absl::StatusCode::kAlreadyExists);
}

TEST_F(StudiesTest, TheBudgetGrowsOnceForOneRequest) {
  AddStudy(PlainStudy("plain", 1));
  const std::string session = Register(MakeWorker("a"));
  Complete(MustAcquire(session).lease, 0.5);
  EXPECT_TRUE(Status("plain").finished);
  for (int repeat = 0; repeat < 2; ++repeat) {
    ASSERT_TRUE(scheduler_->commands().UpdateStudy("plain", {.add_trials = 2}, "extend").ok());
    EXPECT_EQ(Status("plain").spec.budget.trials, 3);
  }
  EXPECT_EQ(MustAcquire(session).lease.trial.number, TrialNumber{1});
}

TEST_F(StudiesTest, WhatAFileStatesAsBeforeDoesNotTakeBackAnExtension) {
  StudySpec spec = PlainStudy("plain", 2);
  spec.space.parameters.push_back({.name = "depth", .domain = CategoricalDomain{{int64_t{2}}}});
  AddStudy(spec);
  Complete(MustAcquire(Register(MakeWorker("a"))).lease, 0.5);
  ASSERT_TRUE(scheduler_->commands().UpdateStudy("plain", {.add_trials = 3}, "").ok());
  EXPECT_EQ(Status("plain").spec.budget.trials, 5);
  std::get<CategoricalDomain>(spec.space.parameters.back().domain).choices.push_back(int64_t{3});
  AddStudy(spec);
  EXPECT_EQ(Status("plain").spec.budget.trials, 5) << "another field has changed";
  EXPECT_EQ(Status("plain").spec.space, spec.space);
  spec.budget.trials = 4;
  AddStudy(spec);
  EXPECT_EQ(Status("plain").spec.budget.trials, 4) << "the file's budget has changed";
}

TEST_F(StudiesTest, AddingTrialsNeverTakesAny) {
  AddStudy(PlainStudy("plain", 100));
  Complete(MustAcquire(Register(MakeWorker("a"))).lease, 0.5);
  ASSERT_TRUE(scheduler_->commands().UpdateStudy("plain", {.add_trials = 50}, "").ok());
  EXPECT_EQ(Status("plain").spec.budget.trials, 150);
  // More trials than the budget allows, as they were enqueued: so many more are to run.
  ASSERT_TRUE(scheduler_->commands().UpdateStudy("plain", {.trials = 0}, "").ok());
  ASSERT_TRUE(scheduler_->commands().UpdateStudy("plain", {.add_trials = 2}, "").ok());
  EXPECT_EQ(Status("plain").spec.budget.trials, 3);
}

TEST_F(StudiesTest, OnlyABudgetCanBeAddedTo) {
  StudySpec unlimited = PlainStudy();
  unlimited.budget.trials.reset();
  AddStudy(unlimited);
  const absl::Status refused = scheduler_->commands().UpdateStudy("plain", {.add_trials = 2}, "");
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  ASSERT_TRUE(scheduler_->commands().UpdateStudy("plain", {.trials = 5}, "").ok());
  for (const int64_t add : {int64_t{0}, int64_t{-3}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        scheduler_->commands().UpdateStudy("plain", {.add_trials = add}, "")))
        << add;
    EXPECT_EQ(Status("plain").spec.budget.trials, 5);
  }
}

TEST_F(StudiesTest, AnUnchangedFileTakesNothingBack) {
  AddStudy(PlainStudy("plain", 5));
  MustAcquire(Register(MakeWorker("a")));
  ASSERT_TRUE(scheduler_->commands().UpdateStudy("plain", {.trials = 9}, "").ok());
  Restart();
  EXPECT_FALSE(scheduler_->commands().CreateStudy(PlainStudy("plain", 5), false, "").value());
  EXPECT_EQ(Status("plain").spec.budget.trials, 9) << "the file says what it always said";
  EXPECT_FALSE(scheduler_->commands().CreateStudy(PlainStudy("plain", 6), false, "").value());
  EXPECT_EQ(Status("plain").spec.budget.trials, 6) << "the file was changed";
}

TEST_F(StudiesTest, ChoicesMayBeAdded) {
  AddStudy(BertStudy());
  ASSERT_TRUE(
      scheduler_->commands()
          .UpdateStudy("bert", {.added_choices = {{"model.name", {std::string("new")}}}}, "")
          .ok());
  const StudySpec spec = Status("bert").spec;
  EXPECT_EQ(std::get<CategoricalDomain>(spec.space.Find("model.name")->domain).choices.size(), 3u);
  const std::pair<StudyUpdate, std::string> refused[] = {
      {{.added_choices = {{"model.nam", {std::string("x")}}}}, "model.nam"},
      {{.added_choices = {{"train.batch_size", {int64_t{3}}}}}, "choices"},
      {{.trials = -1}, "at least 0"},
      {{.failures_in_a_row = -1}, "failures_in_a_row"},
      {{.failed_share = 1.5}, "failed_share"},
      {{.wall_clock = -absl::Seconds(1)}, "at least 0"}};
  for (const auto& [update, message] : refused) {
    const absl::Status status = scheduler_->commands().UpdateStudy("bert", update, "");
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
  EXPECT_EQ(Status("bert").spec, spec);
}

TEST_F(StudiesTest, AnEnqueuedTrialRunsFirstWithTheGivenValues) {
  StudySpec spec = BertStudy();
  spec.space.parameters.push_back(Parameter{.name = "train.lr",
                                            .domain = FloatDomain{.low = 0, .high = 1},
                                            .when = {},
                                            .default_value = 0.25});
  AddStudy(spec);
  const std::string session = Register(MakeBertWorker("a"));
  const EnqueueRequest request{.params = {{"model.name", std::string("tiny")}}};
  const auto number = scheduler_->enqueuer().EnqueueTrial("bert", request, "enqueue");
  ASSERT_TRUE(number.ok()) << number.status();
  EXPECT_EQ(scheduler_->enqueuer().EnqueueTrial("bert", request, "enqueue").value(), *number);
  EXPECT_EQ(Status("bert").counts.queued, 1);
  const Assignment given = MustAcquire(session);
  EXPECT_EQ(given.lease.trial.number, *number);
  EXPECT_EQ(given.task.params.at("model.name"), ParamValue(std::string("tiny")));
  EXPECT_EQ(given.task.params.at("train.lr"), ParamValue(0.25)) << "the default";
  EXPECT_TRUE(Contains(spec.space.Find("train.batch_size")->domain,
                       given.task.params.at("train.batch_size")))
      << "drawn";
}

TEST_F(StudiesTest, EnqueueRefusesWhatTheSpaceDoesNotHave) {
  AddStudy(PlainStudy());
  const std::pair<ParamMap, std::string> cases[] = {
      {{{"train.batch", int64_t{8}}}, "train.batch"},
      {{{"train.batch_size", int64_t{65}}}, "train.batch_size"},
      {{{"train.batch_size", std::string("8")}}, "train.batch_size"}};
  for (const auto& [params, message] : cases) {
    const auto refused = scheduler_->enqueuer().EnqueueTrial("plain", {.params = params}, "");
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
    EXPECT_THAT(refused.status().message(), HasSubstr(message));
  }
  EXPECT_EQ(Status("plain").counts.queued, 0);
}

TEST_F(StudiesTest, TheStudyWithFewerRunningTrialsIsServedFirst) {
  AddStudy(PlainStudy("one"));
  AddStudy(PlainStudy("two"));
  std::map<std::string, int> served;
  for (const char* name : {"a", "b", "c", "d"}) {
    ++served[MustAcquire(Register(MakeWorker(name))).lease.trial.study];
  }
  EXPECT_EQ(served, (std::map<std::string, int>{{"one", 2}, {"two", 2}}));
}

}  // namespace
}  // namespace hpo::server
