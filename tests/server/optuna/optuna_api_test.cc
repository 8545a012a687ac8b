// Studies of Optuna's clients over a real database file; ours among them. What Optuna itself asks
// of a storage, tests/integration/test_optuna_storage.py runs.
#include "server/optuna/optuna_api.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "gmock/gmock.h"
#include "server/coordinator.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr char kUnit[] =
    R"({"name": "FloatDistribution", "attributes": {"low": 0.0, "high": 1.0, "log": false, "step": null}})";
constexpr char kWider[] =
    R"({"name": "FloatDistribution", "attributes": {"low": 0.0, "high": 2.0, "log": false, "step": null}})";
constexpr char kLog[] =
    R"({"name": "FloatDistribution", "attributes": {"low": 0.1, "high": 1.0, "log": true, "step": null}})";
constexpr char kKinds[] =
    R"({"name": "CategoricalDistribution", "attributes": {"choices": ["a", null, NaN]}})";
constexpr char kOtherKinds[] =
    R"({"name": "CategoricalDistribution", "attributes": {"choices": [null, "a", NaN]}})";

class OptunaApiTest : public CoordinatorFixture {
 protected:
  OptunaApi& api() { return coordinator_->optuna(); }

  int64_t NewStudy(const std::string& name = "theirs",
                   const std::vector<Direction>& directions = {Direction::kMinimize}) {
    const auto study = api().CreateStudy(name, directions);
    EXPECT_TRUE(study.ok()) << study.status();
    return study.value_or(-1);
  }
  int64_t NewTrial(int64_t study) {
    const auto trial = api().StartTrial(study);
    EXPECT_TRUE(trial.ok()) << trial.status();
    return trial.value_or(-1);
  }
  OptunaTrial Get(int64_t trial) {
    const auto got = api().GetTrial(trial);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.value_or(OptunaTrial{});
  }
  std::vector<OptunaTrial> All(int64_t study, const OptunaTrialQuery& query = {}) {
    std::vector<OptunaTrial> trials;
    const absl::Status read = api().GetTrials(study, query, [&](OptunaTrial trial) {
      trials.push_back(std::move(trial));
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return trials;
  }
  void Restart() {
    coordinator_.reset();
    Start();
  }
};

OptunaTrial Whole() {
  return OptunaTrial{.state = OptunaState::kComplete,
                     .values = {-kInfinity},
                     .started = "2026-11-25 17:00:00.000001",
                     .completed = "2026-11-25 17:00:01.500000",
                     .params = {{"kind", 2.0, kKinds}, {"x", 0.25, kUnit}},
                     .intermediate_values = {{-1, kInfinity}, {7, 0.5}},
                     .user_attributes = {{"note", "\"\\u00e9\""}, {"huge", "-Infinity"}},
                     .system_attributes = {{"fixed", "{\"x\": NaN}"}}};
}

TEST_F(OptunaApiTest, ATrialIsAsItWasGivenAlsoAfterARestart) {
  const int64_t study = NewStudy("theirs", {Direction::kMaximize});
  ASSERT_TRUE(api().SetStudyAttribute(study, OptunaAttribute::kUser, "a", "1").ok());
  ASSERT_TRUE(api().SetStudyAttribute(study, OptunaAttribute::kSystem, "a", "2").ok());
  const auto id = api().CreateTrial(study, Whole());
  ASSERT_TRUE(id.ok()) << id.status();
  OptunaTrial expected = Whole();
  expected.id = *id;
  EXPECT_EQ(Get(*id), expected);
  Restart();
  EXPECT_EQ(Get(*id), expected);
  const auto found = api().FindStudy("theirs");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, study);
  EXPECT_EQ(*api().GetStudy(study), (OptunaStudySummary{.id = study,
                                                        .name = "theirs",
                                                        .directions = {Direction::kMaximize},
                                                        .user_attributes = {{"a", "1"}},
                                                        .system_attributes = {{"a", "2"}}}));
}

TEST_F(OptunaApiTest, AValueThatIsNoNumberStays) {
  const int64_t trial = NewTrial(NewStudy());
  ASSERT_TRUE(api().SetIntermediateValue(trial, 0, kNan).ok());
  const auto values = Get(trial).intermediate_values;
  ASSERT_THAT(values, SizeIs(1));
  EXPECT_TRUE(std::isnan(values.at(0)));
}

TEST_F(OptunaApiTest, NumbersHaveNoGapsAndIdsAreNeverUsedAgain) {
  const int64_t study = NewStudy();
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&] {
      for (int i = 0; i < 25; ++i) NewTrial(study);
    });
  }
  for (std::thread& client : clients) client.join();
  const std::vector<OptunaTrial> trials = All(study);
  ASSERT_THAT(trials, SizeIs(100));
  for (size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].number, static_cast<int64_t>(i));
    if (i > 0) {
      EXPECT_GT(trials[i].id, trials[i - 1].id);
    }
  }
  ASSERT_TRUE(api().DeleteStudy(study).ok());
  EXPECT_EQ(api().DeleteStudy(study).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(api().GetTrial(trials[0].id).status().code(), absl::StatusCode::kNotFound);
  const int64_t next = NewStudy();
  EXPECT_GT(next, study);
  EXPECT_GT(NewTrial(next), trials.back().id);
}

TEST_F(OptunaApiTest, OneOfManyClientsTakesAWaitingTrial) {
  const int64_t study = NewStudy();
  for (int round = 0; round < 10; ++round) {
    const auto waiting = api().CreateTrial(study, OptunaTrial{.state = OptunaState::kWaiting});
    ASSERT_TRUE(waiting.ok()) << waiting.status();
    std::atomic<int> winners = 0;
    std::vector<std::thread> clients;
    for (int client = 0; client < 4; ++client) {
      clients.emplace_back([&] {
        const auto taken = api().SetState(*waiting, OptunaState::kRunning, {});
        EXPECT_TRUE(taken.ok()) << taken.status();
        if (taken.ok() && *taken) ++winners;
      });
    }
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(Get(*waiting).started.size(), 26u);
  }
}

TEST_F(OptunaApiTest, AFinishedTrialStaysAsItIs) {
  const int64_t trial = NewTrial(NewStudy());
  ASSERT_TRUE(api().SetState(trial, OptunaState::kComplete, {0.5}).ok());
  const OptunaTrial before = Get(trial);
  EXPECT_EQ(before.completed.size(), 26u);
  const absl::StatusCode refused = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ(api().SetState(trial, OptunaState::kRunning, {}).status().code(), refused);
  EXPECT_EQ(api().SetState(trial, OptunaState::kFail, {1.0}).status().code(), refused);
  EXPECT_EQ(api().SetParam(trial, {"x", 0.5, kUnit}).code(), refused);
  EXPECT_EQ(api().SetIntermediateValue(trial, 1, 0.5).code(), refused);
  EXPECT_EQ(api().SetTrialAttribute(trial, OptunaAttribute::kUser, "a", "1").code(), refused);
  EXPECT_EQ(Get(trial), before);
}

TEST_F(OptunaApiTest, ParametersFollowTheFirstOfTheirName) {
  const int64_t study = NewStudy();
  const int64_t first = NewTrial(study);
  ASSERT_TRUE(api().SetParam(first, {"x", 0.5, kUnit}).ok());
  ASSERT_TRUE(api().SetParam(first, {"kind", 1.0, kKinds}).ok());
  const int64_t second = NewTrial(study);
  EXPECT_TRUE(api().SetParam(second, {"x", 1.5, kWider}).ok());
  const std::pair<OptunaParam, const char*> refused[] = {
      {{"x", 0.5, kLog}, "x: expected log = False as earlier trials have"},
      {{"x", 0.0, kKinds}, "x: expected a FloatDistribution as earlier trials have"},
      {{"kind", 0.0, kOtherKinds}, "kind: expected the choices that earlier trials have"},
      {{"kind", 3.0, kKinds}, "kind: expected the index of one of 3 choices, got 3"},
      {{"kind", 0.5, kKinds}, "kind: expected the index of one of 3 choices, got 0.5"},
      {{"x", kNan, kUnit}, "x: expected a finite number, got nan"},
      {{"y", 0.5, "{"}, "y: "},
      {{"y", 0.5, "[]"}, "y: expected a FloatDistribution"},
  };
  for (const auto& [param, message] : refused) {
    SCOPED_TRACE(message);
    const absl::Status status = api().SetParam(second, param);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
  EXPECT_THAT(Get(second).params, ElementsAre(OptunaParam{"x", 1.5, kWider}));
  EXPECT_TRUE(api().SetParam(NewTrial(NewStudy("another")), {"x", 0.5, kLog}).ok());
}

TEST_F(OptunaApiTest, ATrialThatIsRefusedLeavesNothing) {
  const int64_t study = NewStudy();
  const auto refused = [&](const std::function<void(OptunaTrial&)>& spoil) {
    OptunaTrial trial = Whole();
    spoil(trial);
    const auto created = api().CreateTrial(study, trial);
    EXPECT_EQ(created.status().code(), absl::StatusCode::kInvalidArgument) << created.status();
    return std::string(created.status().message());
  };
  EXPECT_THAT(refused([](OptunaTrial& t) { t.values = {}; }),
              HasSubstr("values: expected 1, one for each objective, got 0"));
  EXPECT_THAT(refused([](OptunaTrial& t) { t.values = {kNan}; }), HasSubstr("got nan"));
  EXPECT_THAT(refused([](OptunaTrial& t) { t.started = "now"; }), HasSubstr("datetime_start"));
  EXPECT_THAT(refused([](OptunaTrial& t) { t.user_attributes["a"] = "{"; }),
              HasSubstr("attribute 'a': expected JSON"));
  EXPECT_THAT(refused([](OptunaTrial& t) {
                t.params.push_back({"z", 0.5, "1"});
              }),
              HasSubstr("z: expected a FloatDistribution"));
  EXPECT_THAT(All(study), IsEmpty());
  NewTrial(study);
  EXPECT_EQ(All(study)[0].number, 0);
}

TEST_F(OptunaApiTest, AClientAsksForWhatItHasNotSeenFinished) {
  const int64_t study = NewStudy();
  const int64_t other = NewTrial(NewStudy("another"));
  std::vector<int64_t> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(NewTrial(study));
  std::vector<int64_t> seen;
  for (const OptunaTrial& trial :
       All(study, {.after = ids[2], .included = {ids[3], ids[0], ids[0], other, 999}})) {
    seen.push_back(trial.id);
  }
  EXPECT_THAT(seen, ElementsAre(ids[0], ids[3]));
}

TEST_F(OptunaApiTest, ANameBelongsToOneStudy) {
  NewStudy("theirs");
  EXPECT_EQ(api().CreateStudy("theirs", {Direction::kMinimize}).status().code(),
            absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(Create(kPlainStudy).ok());
  EXPECT_EQ(api().CreateStudy("plain", {Direction::kMinimize}).status().code(),
            absl::StatusCode::kAlreadyExists);
  std::string yaml = kPlainStudy;
  yaml.replace(yaml.find("plain"), 5, "theirs");
  const grpc::Status taken = Create(yaml);
  EXPECT_EQ(taken.error_code(), grpc::ALREADY_EXISTS);
  EXPECT_THAT(taken.error_message(), HasSubstr("got that of an Optuna client's"));
  EXPECT_EQ(api().CreateStudy("none", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(OptunaApiTest, OursAreReadAndNotChanged) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  Complete(Acquire(Register(), "r1").assignment(), 0.75);
  const auto study = api().FindStudy("plain");
  ASSERT_TRUE(study.ok()) << study.status();
  const std::vector<OptunaTrial> trials = All(*study);
  ASSERT_THAT(trials, SizeIs(1));
  EXPECT_EQ(trials[0].state, OptunaState::kComplete);
  EXPECT_THAT(trials[0].values, ElementsAre(0.75));
  EXPECT_THAT(trials[0].params, SizeIs(3));
  EXPECT_EQ(Get(trials[0].id), trials[0]);
  EXPECT_EQ(*api().FindTrial(*study, 0), trials[0].id);
  EXPECT_EQ(api().FindTrial(*study, 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(api().GetTrial(trials[0].id + 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(api().GetStudy(*study + 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(All(*study, {.after = trials[0].id}), IsEmpty());
  EXPECT_THAT(All(*study, {.after = std::numeric_limits<int64_t>::min()}), SizeIs(1));
  EXPECT_THAT(All(*study, {.after = std::numeric_limits<int64_t>::max()}), IsEmpty());
  EXPECT_THAT(All(*study, {.after = trials[0].id, .included = {trials[0].id}}), SizeIs(1));

  const absl::Status refusals[] = {
      api().DeleteStudy(*study),
      api().SetStudyAttribute(*study, OptunaAttribute::kUser, "a", "1"),
      api().StartTrial(*study).status(),
      api().SetParam(trials[0].id, {"x", 0.5, kUnit}),
      api().SetState(trials[0].id, OptunaState::kFail, {}).status(),
      api().SetIntermediateValue(trials[0].id, 0, 0.5),
      api().SetTrialAttribute(trials[0].id, OptunaAttribute::kUser, "a", "1"),
  };
  for (const absl::Status& refused : refusals) {
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(refused.message(), HasSubstr("study plain is hpo-server's own"));
  }
  const int64_t id = trials[0].id;
  Restart();
  EXPECT_EQ(*api().FindStudy("plain"), *study);
  EXPECT_EQ(Get(id), trials[0]);
  NewStudy();
  EXPECT_THAT(*api().ListStudies(),
              ElementsAre(testing::Field(&OptunaStudySummary::name, "theirs"),
                          AllOf(testing::Field(&OptunaStudySummary::id, *study),
                                testing::Field(&OptunaStudySummary::name, "plain"))));
}

// A client that goes on after a study was deleted must not take the next one for it.
TEST_F(OptunaApiTest, AStudyInTheRowOfAnotherIsAnother) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  const auto before = api().FindStudy("plain");
  ASSERT_TRUE(before.ok()) << before.status();
  coordinator_.reset();
  {
    const auto file = Database::Open(Options().database, Database::Access::kReadWrite);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Execute("UPDATE study SET created = created + 1").ok());
  }
  Start();
  EXPECT_NE(*api().FindStudy("plain"), *before);
  EXPECT_EQ(api().GetStudy(*before).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hpo::server
