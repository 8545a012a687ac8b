// Every pruner decides as Optuna's does, report for report. Golden: scripts/reference/pruners.py.
#include <cstdlib>
#include <set>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sampler/api/pruner.h"
#include "sampler/factory/make_pruner.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

double ValueOf(const nlohmann::json& json) {
  return json.is_string() ? std::strtod(json.get<std::string>().c_str(), nullptr)
                          : json.get<double>();
}

// Replays a study's events and asks at each report.
class Replay {
 public:
  explicit Replay(const nlohmann::json& golden) {
    study_.name = golden["study"];
    study_.objectives = {
        {"value", golden["direction"] == "maximize" ? Direction::kMaximize : Direction::kMinimize}};
    const auto pruner = PrunerFromJson(golden["pruner"]);
    EXPECT_TRUE(pruner.ok()) << pruner.status();
    study_.pruner = *pruner;
    EXPECT_TRUE(ValidatePruner(study_.pruner).ok());
    pruner_ = MakePruner(study_);
  }

  std::optional<PruneDecision> Report(TrialNumber number, int64_t step, double value) {
    HistoryTrial& trial = trials_[number];
    trial.number = number;
    trial.intermediate.Add(step, Loss(value));
    history_.Apply({++sequence_, trial});
    return pruner_->Decide(history_, number);
  }

  void End(TrialNumber number, const std::string& state, std::optional<double> value) {
    HistoryTrial& trial = trials_[number];
    trial.number = number;
    trial.state = state == "completed" ? TrialState::kCompleted
                  : state == "failed"  ? TrialState::kFailed
                                       : TrialState::kPruned;
    if (state == "stopped") trial.prune_reason = PruneReason::kPruner;
    if (state == "out_of_memory") trial.prune_reason = PruneReason::kOutOfMemory;
    if (value.has_value()) trial.losses = {Loss(*value)};
    history_.Apply({++sequence_, trial});
  }

 private:
  double Loss(double value) const {
    return study_.objectives.front().direction == Direction::kMaximize ? -value : value;
  }

  StudySpec study_;
  std::unique_ptr<Pruner> pruner_;
  std::map<TrialNumber, HistoryTrial> trials_;
  History history_;
  int64_t sequence_ = 0;
};

TEST(PrunerConformance, DecidesAsOptunaDoes) {
  std::map<std::string, int> num_stops;
  std::map<std::string, int> num_decisions;
  const nlohmann::json file = ReadGolden("pruners.json");
  for (const auto& golden : file["studies"]) {
    SCOPED_TRACE(golden["study"].dump() + golden["pruner"].dump());
    const std::string type = golden["pruner"]["type"];
    Replay replay(golden);
    for (const auto& event : golden["events"]) {
      const TrialNumber trial{event[0]};
      if (event[1].is_string()) {
        replay.End(trial, event[1],
                   event.size() > 2 ? std::optional(ValueOf(event[2])) : std::nullopt);
        continue;
      }
      const auto stop = replay.Report(trial, event[1], ValueOf(event[2]));
      ASSERT_EQ(stop.has_value(), event[3].get<bool>()) << event << (stop ? stop->why : "");
      ++num_decisions[type];
      if (!stop.has_value()) continue;
      ++num_stops[type];
      EXPECT_EQ(stop->pruner, type);
      EXPECT_EQ(stop->step, event[1].get<int64_t>());
      EXPECT_NE(stop->why, "");
    }
  }
  EXPECT_EQ(num_stops.size(), 7u);
  for (const auto& [type, stops] : num_stops) {
    EXPECT_GT(stops, 30) << type;
    EXPECT_GT(num_decisions[type] - stops, 300) << type;
  }
}

}  // namespace
}  // namespace hpo::sampler
