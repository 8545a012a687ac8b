#include "server/api/pareto.h"

#include <algorithm>
#include <limits>
#include <random>
#include <variant>

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

Trial MakeTrial(int64_t number, const Metrics& metrics) {
  Trial trial;
  trial.id.number = TrialNumber{number};
  trial.outcome = Completed{.metrics = metrics, .model_path = ""};
  return trial;
}

std::vector<Trial> Front(const std::vector<Trial>& trials,
                         const std::vector<Objective>& objectives) {
  const auto front = ParetoFront(trials, objectives, [] { return false; });
  EXPECT_TRUE(front.ok()) << front.status();
  return front.value_or(std::vector<Trial>());
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
  for (const Trial& trial : Front(trials, objectives)) {
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
    for (const Trial& trial : Front(trials, objectives)) {
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

// Every trial against every other, for few values, so that there are ties.
TEST(Pareto, AgreesWithTheDefinition) {
  std::mt19937 random(1);
  for (const size_t num_objectives : {1, 2, 3}) {
    for (int repetition = 0; repetition < 50; ++repetition) {
      std::vector<Objective> objectives;
      for (size_t i = 0; i < num_objectives; ++i) {
        objectives.push_back({std::string(1, static_cast<char>('a' + i)), Direction::kMinimize});
      }
      std::vector<Trial> trials;
      for (int64_t number = 0; number < 40; ++number) {
        Metrics metrics;
        for (const Objective& objective : objectives) {
          const auto value = static_cast<double>(random() % 6);
          metrics[objective.metric] =
              value == 5.0 ? std::numeric_limits<double>::infinity() : value;
        }
        trials.push_back(MakeTrial(number, metrics));
      }
      std::vector<int64_t> expected;
      for (const Trial& trial : trials) {
        const Metrics& own = std::get<Completed>(*trial.outcome).metrics;
        const bool dominated = std::any_of(trials.begin(), trials.end(), [&](const Trial& other) {
          const Metrics& its = std::get<Completed>(*other.outcome).metrics;
          return its != own && std::all_of(its.begin(), its.end(), [&](const auto& metric) {
                   return metric.second <= own.at(metric.first);
                 });
        });
        if (!dominated) expected.push_back(trial.id.number.value);
      }
      std::vector<int64_t> found;
      for (const Trial& trial : Front(trials, objectives)) found.push_back(trial.id.number.value);
      ASSERT_EQ(found, expected);
    }
  }
}

TEST(Pareto, NotANumberIsWorst) {
  const std::vector<Objective> objectives = {{"a", Direction::kMinimize},
                                             {"b", Direction::kMaximize}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Trial> front = Front(
      {MakeTrial(0, {{"a", nan}, {"b", nan}}), MakeTrial(1, {{"a", 1.0}, {"b", 1.0}})}, objectives);
  ASSERT_EQ(front.size(), 1u);
  EXPECT_EQ(front[0].id.number, TrialNumber{1});
}

// All on the front, as many as an import may bring: each is looked at once.
TEST(Pareto, EndsWithItsCaller) {
  const std::vector<Objective> objectives = {{"a", Direction::kMinimize},
                                             {"b", Direction::kMaximize}};
  std::vector<Trial> trials;
  for (int64_t i = 0; i < 100'000; ++i) {
    const auto value = static_cast<double>(i);
    trials.push_back(MakeTrial(i, {{"a", value}, {"b", value}}));
  }
  EXPECT_EQ(Front(trials, objectives).size(), trials.size());
  int looks = 0;
  const auto left = ParetoFront(trials, objectives, [&looks] { return ++looks == 3; });
  EXPECT_EQ(left.status().code(), absl::StatusCode::kCancelled);
}

TEST(Pareto, OfNothingIsNothing) { EXPECT_TRUE(Front({}, {{"f1", Direction::kMaximize}}).empty()); }

}  // namespace
}  // namespace hpo::server
