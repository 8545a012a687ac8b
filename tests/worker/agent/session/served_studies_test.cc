// Which studies a worker serves, as it tells the server.
#include <thread>

#include "tests/worker/agent/agent_loop_fixture.h"
#include "worker/agent/session/study_command.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;

using Names = std::vector<std::string>;

class ServedByAgentTest : public AgentLoopTest {
 protected:
  // What the worker told at its registrations, while `studies` were there one after the other.
  std::vector<std::optional<Names>> Told(const std::vector<Names>& studies) {
    coordinator_.NeverFinish();
    Show(studies.front());
    std::thread server([&] {
      // After each registration the first ask does not wait, the second does.
      for (size_t i = 1; i < studies.size(); ++i) {
        EXPECT_TRUE(coordinator_.AwaitAcquires(2 * i));
        Show(studies[i]);
      }
      EXPECT_TRUE(coordinator_.AwaitAcquires(2 * studies.size()));
      stop_.Raise();
    });
    Run();
    server.join();
    std::vector<std::optional<Names>> told;
    for (const WorkerFacts& facts : coordinator_.registrations()) told.push_back(facts.serves);
    EXPECT_EQ(told.size(), studies.size());
    return told;
  }

 private:
  void Show(const Names& studies) {
    std::vector<StudyData> data;
    for (const std::string& name : studies) data.push_back({.study = name});
    coordinator_.SetStudies(std::move(data));
  }
};

TEST_F(ServedByAgentTest, OurTrainerServesEveryStudy) {
  EXPECT_THAT(Told({{"a", "b"}}), ElementsAre(std::nullopt));
}

TEST_F(ServedByAgentTest, ATrainerOfItsOwnServesTheOnlyStudyAndStaysWithIt) {
  options_.own_trainer = true;
  const auto told = Told({{"a"}, {"a", "b"}, {"b"}});
  for (const auto& names : told) EXPECT_EQ(names, Names{"a"});
}

TEST_F(ServedByAgentTest, AmongSeveralItServesNoneUntilThereIsOne) {
  options_.own_trainer = true;
  const auto told = Told({{"a", "b"}, {"b"}});
  EXPECT_EQ(told.front(), Names{});
  EXPECT_EQ(told.back(), Names{"b"});
}

TEST_F(ServedByAgentTest, WhatItWasToldCountsWhateverThereIs) {
  options_.own_trainer = true;
  options_.studies = {"b", "c"};
  for (const auto& names : Told({{"a"}, {"a", "b"}})) EXPECT_EQ(names, options_.studies);
}

TEST_F(ServedByAgentTest, DataOfAnotherStudyAreNotLookedFor) {
  options_.studies = {"mine"};
  coordinator_.SetStudies({{"other", "/nowhere/train.jsonl", "/nowhere/valid.jsonl"}});
  Add(0);
  options_.max_trials = 1;
  EXPECT_EQ(Run().code, ExitCode::kDone) << "else 8: no study's data are here";
}

TEST_F(ServedByAgentTest, OfAStudyForAProgramNoDataAreLookedFor) {
  coordinator_.SetStudies(
      {{.study = "mine", .train = "/nowhere/train.jsonl", .task = "custom", .command = {"run"}}});
  Add(0);
  options_.max_trials = 1;
  EXPECT_EQ(Run().code, ExitCode::kDone) << "else 8: no study's data are here";
}

class FindCommandTest : public ServedByAgentTest {
 protected:
  absl::StatusOr<FoundCommand> Find(const Names& served, absl::Duration timeout = {},
                                    bool stay = false) {
    return FindStudyCommand(
        coordinator_,
        {.served = served, .server = "fake", .connect_timeout = timeout, .stay = stay},
        Backoff(absl::Milliseconds(1), absl::Milliseconds(1), 1), stop_);
  }
};

TEST_F(FindCommandTest, OfTheOneStudyThatHasOne) {
  coordinator_.SetStudies({{.study = "a"},
                           {.study = "b", .command = {"run it", "{x}"}, .workdir = "/my data"},
                           {.study = "c", .command = {"run"}}});
  EXPECT_EQ(Find({"b"})->command->command, "cd '/my data' && 'run it' {x}");
  EXPECT_EQ(Find({"a", "c"})->command->study, "c");
  EXPECT_EQ(*Find({"a"}), FoundCommand());
  EXPECT_THAT(Find({}).status().message(), ::testing::HasSubstr("got b, c; give --study NAME"));
}

TEST_F(FindCommandTest, GpusThatTheServedStudiesAgreeOn) {
  const auto find = [this](const Names& served) {
    return *FindGpusPerTrial(coordinator_, {.served = served, .server = "fake"},
                             Backoff(absl::Milliseconds(1), absl::Milliseconds(1), 1), stop_);
  };
  const FinishedStudy end{"c", "its budget is used up"};
  coordinator_.SetStudies({{.study = "a", .gpus = 4},
                           {.study = "b", .gpus = 2},
                           {.study = "c", .gpus = 8, .end = end},
                           {.study = "d", .gpus = 4}});
  EXPECT_EQ(find({"a", "d"}), 4);
  EXPECT_EQ(find({"b", "c"}), 2);
  EXPECT_EQ(find({"c"}), 1);
  EXPECT_EQ(find({}), 1) << "they differ";
}

TEST_F(FindCommandTest, EndsWithItsStudies) {
  const FinishedStudy end{"b", "its budget is used up"};
  coordinator_.SetStudies({{.study = "a"}, {.study = "b", .command = {"run"}, .end = end}});
  EXPECT_THAT(Find({"b"})->ended, ElementsAre(end));
  EXPECT_EQ(*Find({}), FoundCommand()) << "a still runs";
}

TEST_F(FindCommandTest, WaitsNoLongerThanItMayBeIdle) {
  const CommandSearch search{.served = {},
                             .server = "fake",
                             .connect_timeout = absl::Hours(1),
                             .max_idle = absl::Milliseconds(20)};
  const Backoff pauses(absl::Hours(1), absl::Hours(1), 1);
  const auto command = FindStudyCommand(coordinator_, search, pauses, stop_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(command.status())) << command.status();
  EXPECT_THAT(command.status().message(), ::testing::HasSubstr("no trial for 20ms (--max-idle)"));
  const auto gpus = FindGpusPerTrial(coordinator_, search, pauses, stop_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(gpus.status())) << gpus.status();
}

TEST_F(FindCommandTest, WaitsForAStudy) {
  for (const bool stay : {false, true}) {
    coordinator_.SetStudies({});
    if (stay) coordinator_.SetStudies({{.study = "b", .end = FinishedStudy{"b", "over"}}});
    std::thread creator([this] { coordinator_.SetStudies({{.study = "b", .command = {"run"}}}); });
    EXPECT_EQ(Find({"b"}, /*timeout=*/{}, stay)->command->study, "b");
    creator.join();
  }
  stop_.Raise();
  EXPECT_TRUE(absl::IsCancelled(Find({"elsewhere"}).status()));
}

TEST_F(FindCommandTest, SaysThatNoServerAnswers) {
  coordinator_.SetAway(true);
  const absl::Status status = Find({"b"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), ::testing::HasSubstr("no answer from fake within 0"));
}

}  // namespace
}  // namespace hpo::agent
