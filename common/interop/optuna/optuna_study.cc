#include "common/interop/optuna/optuna_study.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_distribution.h"
#include "common/interop/optuna/optuna_source.h"
#include "common/study/attributes.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::json;

constexpr char kPruner[] = "optuna";
constexpr char kOfExports[] = "hpo:";  // what optuna_file.h says of a trial of ours

class Reader {
 public:
  // Both outlive it.
  Reader(const OptunaSource& source, const StudySpec& study) : source_(source), study_(study) {}

  absl::StatusOr<OptunaStudy> Read();

 private:
  struct Stored {
    int64_t id = 0;
    std::string state;
    ImportedTrial trial;
    std::map<std::string, Json> told;  // what an export of ours says of it
  };

  absl::Status CheckDirections() const;
  absl::Status CheckMetrics() const;
  absl::StatusOr<std::vector<Stored>> ReadTrials() const;
  absl::Status ReadDetails(Stored& stored);
  absl::Status ReadStudyAttributes();
  absl::Status ReadTrialAttributes(Stored& stored);
  void Keep(const std::string& key, const std::string& text, Attributes& attributes);
  absl::Status ReadParams(Stored& stored);
  absl::Status ReadMeasurements(Stored& stored) const;
  absl::StatusOr<TrialOutcome> OutcomeOf(const Stored& stored) const;
  absl::StatusOr<std::optional<TrialOutcome>> OwnOutcome(const Stored& stored) const;
  absl::StatusOr<Metrics> ReadValues(const Stored& stored) const;
  bool LacksParameters(const ParamMap& params) const;

  const OptunaSource& source_;
  const StudySpec& study_;
  OptunaStudy result_;
};

// A number that has a type instead of a value is not finite.
double NumberOf(const OptunaRow& row, int value, int type) {
  const std::string kind = row.Text(type);
  if (kind == "INF_POS") return std::numeric_limits<double>::infinity();
  if (kind == "INF_NEG") return -std::numeric_limits<double>::infinity();
  if (kind == "NAN") return std::numeric_limits<double>::quiet_NaN();
  return row.Real(value);
}

absl::Time TimeOf(const std::string& text) {
  absl::Time time = absl::InfinitePast();
  std::string error;
  const char* format = "%Y-%m-%d %H:%M:%E*S";
  if (text.empty() || !absl::ParseTime(format, text, absl::LocalTimeZone(), &time, &error)) {
    return absl::InfinitePast();
  }
  return time;
}

// Whether a value that was read is a choice that stands for what we have no value for.
bool IsText(double stored, const Json& distribution) {
  const Json choices = distribution["attributes"].value("choices", Json());
  return choices.is_array() && IsTextChoice(choices[static_cast<size_t>(stored)]);
}

absl::Status Reader::CheckDirections() const {
  HPO_ASSIGN_OR_RETURN(const std::vector<std::string> got, source_.Directions());
  std::vector<std::string> expected;
  for (const Objective& objective : study_.objectives) {
    expected.emplace_back(objective.direction == Direction::kMinimize ? "MINIMIZE" : "MAXIMIZE");
  }
  if (got == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("directions: expected ",
                                                 absl::StrJoin(expected, ", "), " as in study ",
                                                 study_.name, ", got ", absl::StrJoin(got, ", ")));
}

absl::Status Reader::CheckMetrics() const {
  Json expected = Json::array();
  for (const Objective& objective : study_.objectives) expected.push_back(objective.metric);
  HPO_ASSIGN_OR_RETURN(const std::optional<Json> got, source_.MetricNames());
  if (!got.has_value() || *got == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("metrics: expected ", DumpJson(expected),
                                                 " as in study ", study_.name, ", got ",
                                                 DumpJson(*got)));
}

absl::StatusOr<std::vector<Reader::Stored>> Reader::ReadTrials() const {
  std::vector<Stored> trials;
  HPO_RETURN_IF_ERROR(source_.Select(
      "SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials WHERE "
      "study_id = ? ORDER BY number",
      Json::array({source_.study_id()}), [&](const OptunaRow& row) {
        Stored& stored = trials.emplace_back();
        stored.id = row.Int(0);
        stored.state = row.Text(2);
        stored.trial.origin = absl::StrCat("optuna:", result_.name, "#", row.Int(1));
        stored.trial.started = TimeOf(row.Text(3));
        stored.trial.ended = TimeOf(row.Text(4));
        return absl::OkStatus();
      }));
  return trials;
}

absl::Status Reader::ReadParams(Stored& stored) {
  return source_.Select(
      "SELECT param_name, param_value, distribution_json FROM trial_params WHERE trial_id = ?",
      Json::array({stored.id}), [&](const OptunaRow& row) -> absl::Status {
        const std::string name = row.Text(0);
        absl::StatusOr<Json> distribution = ParsePythonJson(row.Text(2));
        absl::StatusOr<ParamValue> value =
            distribution.ok() ? OptunaValue(row.Real(1), *distribution) : distribution.status();
        if (!value.ok()) return Annotate(value.status(), absl::StrCat("parameter ", name));
        if (IsText(row.Real(1), *distribution)) result_.as_text.insert(name);
        stored.trial.params[name] = *std::move(value);
        return absl::OkStatus();
      });
}

absl::Status Reader::ReadMeasurements(Stored& stored) const {
  return source_.Select(
      "SELECT step, intermediate_value, intermediate_value_type FROM trial_intermediate_values "
      "WHERE trial_id = ? ORDER BY step",
      Json::array({stored.id}), [&](const OptunaRow& row) {
        stored.trial.measurements.push_back(
            {.step = row.Int(0),
             .metrics = {{study_.objectives.front().metric, NumberOf(row, 1, 2)}}});
        return absl::OkStatus();
      });
}

void Reader::Keep(const std::string& key, const std::string& text, Attributes& attributes) {
  if (key == kRetryOfKey) return;  // the number of a trial of the study that was exported
  absl::StatusOr<Attributes> more = Changed(attributes, Adding({{key, text}}));
  if (more.ok()) {
    attributes = *std::move(more);
  } else {
    ++result_.num_unfit;
  }
}

absl::Status Reader::ReadStudyAttributes() {
  return source_.Select("SELECT \"key\", value_json FROM study_user_attributes WHERE study_id = ?",
                        Json::array({source_.study_id()}), [&](const OptunaRow& row) {
                          Keep(row.Text(0), row.Text(1), result_.attributes);
                          return absl::OkStatus();
                        });
}

absl::Status Reader::ReadTrialAttributes(Stored& stored) {
  return source_.Select("SELECT \"key\", value_json FROM trial_user_attributes WHERE trial_id = ?",
                        Json::array({stored.id}), [&](const OptunaRow& row) -> absl::Status {
                          const std::string key = row.Text(0);
                          if (!absl::StartsWith(key, kOfExports)) {
                            Keep(key, row.Text(1), stored.trial.attributes);
                            return absl::OkStatus();
                          }
                          absl::StatusOr<Json> value = ParseJson(row.Text(1));
                          if (!value.ok()) return Annotate(value.status(), key);
                          stored.told[key] = *std::move(value);
                          return absl::OkStatus();
                        });
}

absl::Status Reader::ReadDetails(Stored& stored) {
  HPO_RETURN_IF_ERROR(ReadParams(stored));
  HPO_RETURN_IF_ERROR(ReadMeasurements(stored));
  HPO_RETURN_IF_ERROR(ReadTrialAttributes(stored));
  const auto demonstration = stored.told.find("hpo:demonstration");
  stored.trial.demonstration =
      demonstration != stored.told.end() && demonstration->second == Json(true);
  HPO_ASSIGN_OR_RETURN(stored.trial.outcome, OutcomeOf(stored));
  return absl::OkStatus();
}

absl::StatusOr<Metrics> Reader::ReadValues(const Stored& stored) const {
  std::map<int64_t, double> values;
  HPO_RETURN_IF_ERROR(
      source_.Select("SELECT objective, value, value_type FROM trial_values WHERE trial_id = ?",
                     Json::array({stored.id}), [&](const OptunaRow& row) {
                       values[row.Int(0)] = NumberOf(row, 1, 2);
                       return absl::OkStatus();
                     }));
  Metrics metrics;
  for (const auto& [objective, value] : values) {
    if (objective < 0 || objective >= static_cast<int64_t>(study_.objectives.size())) continue;
    metrics[study_.objectives[static_cast<size_t>(objective)].metric] = value;
  }
  return metrics;
}

// nullopt where the trial was not ours, or is told to have ended otherwise since.
absl::StatusOr<std::optional<TrialOutcome>> Reader::OwnOutcome(const Stored& stored) const {
  const auto found = stored.told.find("hpo:outcome");
  if (found == stored.told.end()) return std::nullopt;
  absl::StatusOr<TrialOutcome> outcome = OutcomeFromJson(found->second);
  if (!outcome.ok()) return Annotate(outcome.status(), found->first);
  const TrialState state = StateOf(*outcome);
  const bool ended_badly = state == TrialState::kFailed || state == TrialState::kCancelled;
  const bool same =
      (stored.state == "COMPLETE" && state == TrialState::kCompleted) ||
      (stored.state == "PRUNED" && (state == TrialState::kPruned || stored.trial.demonstration)) ||
      (stored.state == "FAIL" && ended_badly);
  if (!same) return std::nullopt;
  return *std::move(outcome);
}

absl::StatusOr<TrialOutcome> Reader::OutcomeOf(const Stored& stored) const {
  HPO_ASSIGN_OR_RETURN(std::optional<TrialOutcome> own, OwnOutcome(stored));
  if (own.has_value()) return *std::move(own);
  if (stored.state == "FAIL") {
    return Failed{.failure_class = FailureClass::kTrainerCrashed, .message = "failed in Optuna"};
  }
  HPO_ASSIGN_OR_RETURN(Metrics metrics, ReadValues(stored));
  if (stored.state == "COMPLETE") {
    if (metrics.size() == study_.objectives.size()) return Completed{.metrics = std::move(metrics)};
    return absl::InvalidArgumentError(
        absl::StrCat("values: expected ", study_.objectives.size(), ", got ", metrics.size()));
  }
  StoppedByPruner stopped{.pruner = kPruner};
  if (!stored.trial.measurements.empty()) {
    stopped.step = stored.trial.measurements.back().step;
    stopped.metrics = stored.trial.measurements.back().metrics;
  } else {
    stopped.metrics = std::move(metrics);
  }
  return stopped;
}

bool HasInfiniteValue(const TrialOutcome& outcome) {
  const auto* completed = std::get_if<Completed>(&outcome);
  return completed != nullptr &&
         std::any_of(completed->metrics.begin(), completed->metrics.end(),
                     [](const auto& metric) { return std::isinf(metric.second); });
}

bool Reader::LacksParameters(const ParamMap& params) const {
  return std::any_of(study_.space.parameters.begin(), study_.space.parameters.end(),
                     [&params](const Parameter& parameter) {
                       return parameter.when.empty() && !params.contains(parameter.name);
                     });
}

absl::StatusOr<OptunaStudy> Reader::Read() {
  result_.name = source_.name();
  const std::string& path = source_.path();
  const std::string place = absl::StrCat(path, ": study ", result_.name);
  HPO_RETURN_IF_ERROR(Annotate(CheckDirections(), place));
  HPO_RETURN_IF_ERROR(Annotate(CheckMetrics(), place));
  HPO_RETURN_IF_ERROR(Annotate(ReadStudyAttributes(), place));
  HPO_ASSIGN_OR_RETURN(std::vector<Stored> trials, ReadTrials());
  for (Stored& stored : trials) {
    if (stored.state == "WAITING" || stored.state == "RUNNING") {
      ++result_.num_open;
      continue;
    }
    if (stored.state != "COMPLETE" && stored.state != "PRUNED" && stored.state != "FAIL") {
      return absl::InvalidArgumentError(absl::StrCat(
          place, ", ", stored.trial.origin, ": expected a state of Optuna's, got ", stored.state));
    }
    HPO_RETURN_IF_ERROR(
        Annotate(ReadDetails(stored), absl::StrCat(path, ": ", stored.trial.origin)));
    if (LacksParameters(stored.trial.params)) {
      ++(stored.state == "FAIL" ? result_.num_incomplete : result_.num_lacking);
      continue;
    }
    result_.num_not_finite += HasInfiniteValue(stored.trial.outcome);
    result_.trials.push_back(std::move(stored.trial));
  }
  return std::move(result_);
}

}  // namespace

absl::StatusOr<OptunaStudy> ReadOptunaStudy(const std::string& path, const std::string& name,
                                            const StudySpec& study) {
  HPO_ASSIGN_OR_RETURN(const OptunaSource source, OptunaSource::Open(path, name));
  return Reader(source, study).Read();
}

}  // namespace hpo
