// A trial as Optuna has it: what its files hold and its storage's clients are told. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/study/study.h"
#include "common/study/trial_view.h"

namespace hpo {

// In the order of Optuna's numbers for them.
enum class OptunaState { kRunning, kComplete, kPruned, kFail, kWaiting };

// "RUNNING", as Optuna writes it; nullopt where it has no such state.
absl::string_view Name(OptunaState state);
std::optional<OptunaState> ParseOptunaState(absl::string_view name);
// Of a trial that nothing changes any more.
bool IsFinished(OptunaState state);

struct OptunaParam {
  std::string name;
  double value = 0.0;        // of a choice its index
  std::string distribution;  // JSON
  bool operator==(const OptunaParam&) const = default;
};

struct OptunaTrial {
  int64_t id = 0;
  int64_t number = 0;
  OptunaState state = OptunaState::kRunning;
  std::vector<double> values;  // by objective; may be infinite
  std::string started;         // OptunaTimeText
  std::string completed;
  std::vector<OptunaParam> params;
  std::map<int64_t, double> intermediate_values;         // by step; may be infinite or no number
  std::map<std::string, std::string> user_attributes;    // JSON
  std::map<std::string, std::string> system_attributes;  // JSON
  bool operator==(const OptunaTrial&) const = default;
};

// Local time, without its zone; "" for InfinitePast.
std::string OptunaTimeText(absl::Time time);

// The system attribute of a study that names its objectives, as JSON.
inline constexpr char kOptunaMetricNames[] = "study:metric_names";
std::string OptunaMetricNames(const StudySpec& study);

// One of ours; its id stays 0. Queued is WAITING; failed and cancelled are FAIL, and so is a
// completed one that lacks an objective, which Optuna does not know; a demonstration is PRUNED, so
// that it is never the best. A pruned trial's value is the last that was measured, as Optuna has
// it. What people and programs noted is its user attributes; how it ended is "hpo:outcome", who
// proposed it "hpo:sampler". A value that the space has no more (`hpo study edit`) is left out. Of
// a completed trial the system attribute "constraints" holds how far it is beyond each of the
// study's, in their order, <= 0 where it keeps it; so Optuna's best trial is ours.
OptunaTrial ToOptuna(const StudySpec& study, const TrialView& view);

}  // namespace hpo
