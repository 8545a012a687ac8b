#include "server/api/pareto.h"

#include <limits>

#include "gtest/gtest.h"

namespace hpo {
namespace {

Trial MakeTrial(int64_t number, const Metrics& metrics) {
  Trial trial;
  trial.id.number = TrialNumber{number};
  trial.outcome = Completed{.metrics = metrics, .model_path = ""};
  return trial;
}

TEST(Pareto, KeepsWhatNothingDominates) {
  const std::vector<Objective> objectives = {{"f1", Direction::kMaximize},
                                             {"seconds", Direction::kMinimize}};
  std::vector<Trial> trials = {MakeTrial(0, {{"f1", 0.9}, {"seconds", 100}}),
                               MakeTrial(1, {{"f1", 0.8}, {"seconds", 100}}),
                               MakeTrial(2, {{"f1", 0.5}, {"seconds", 10}}),
                               MakeTrial(3, {{"f1", 0.5}, {"seconds", 10}}),
                               MakeTrial(4, {{"f1", 1.0}}),
                               MakeTrial(5, {{"f1", 0.4}, {"seconds", 20}})};
  Trial failed;
  failed.outcome = Failed{};
  trials.push_back(failed);
  std::vector<int64_t> numbers;
  for (const Trial& trial : ParetoFront(trials, objectives)) {
    numbers.push_back(trial.id.number.value);
  }
  EXPECT_EQ(numbers, (std::vector<int64_t>{0, 2, 3})) << "equal trials do not dominate each other";
}

TEST(Pareto, IsOfTheFeasibleTrialsOrElseOfTheLeastViolating) {
  const std::vector<Objective> objectives = {{"f1", Direction::kMaximize},
                                             {"seconds", Direction::kMinimize}};
  std::vector<Trial> trials = {
      MakeTrial(0, {{"f1", 0.9}, {"seconds", 1}}), MakeTrial(1, {{"f1", 0.5}, {"seconds", 50}}),
      MakeTrial(2, {{"f1", 0.4}, {"seconds", 40}}), MakeTrial(3, {{"f1", 0.3}, {"seconds", 60}})};
  trials[0].violation = 0.5;
  const auto numbers = [&] {
    std::vector<int64_t> front;
    for (const Trial& trial : ParetoFront(trials, objectives)) {
      front.push_back(trial.id.number.value);
    }
    return front;
  };
  EXPECT_EQ(numbers(), (std::vector<int64_t>{1, 2}));
  for (size_t i = 1; i < 4; ++i) trials[i].violation = 0.25;
  EXPECT_EQ(numbers(), (std::vector<int64_t>{1, 2}));
  trials[3].violation = 0.125;
  EXPECT_EQ(numbers(), (std::vector<int64_t>{3}));
}

TEST(Pareto, OfNothingIsNothing) {
  EXPECT_TRUE(ParetoFront({}, {{"f1", Direction::kMaximize}}).empty());
}

}  // namespace
}  // namespace hpo
