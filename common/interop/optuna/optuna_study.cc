#include "common/interop/optuna/optuna_study.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_database.h"
#include "common/study/attributes.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::json;

constexpr char kPruner[] = "optuna";
constexpr char kOfExports[] = "hpo:";  // what optuna_file.h says of a trial of ours

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

// One row of an answer, by column.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}

  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text == nullptr ? "" : text;
  }

 private:
  sqlite3_stmt* statement_;
};

class Reader {
 public:
  Reader(std::string path, const StudySpec& study) : path_(std::move(path)), study_(study) {}

  absl::Status Open();
  absl::StatusOr<OptunaStudy> Read(const std::string& name);

 private:
  struct Stored {
    int64_t id = 0;
    std::string state;
    ImportedTrial trial;
    std::map<std::string, Json> told;  // what an export of ours says of it
  };
  using TakeRow = std::function<absl::Status(const Row&)>;

  absl::Status Select(const char* sql, const Json& values, const TakeRow& take) const;
  absl::Status FindStudy(const std::string& name);
  absl::Status CheckDirections() const;
  absl::Status CheckMetrics() const;
  absl::StatusOr<std::vector<Stored>> ReadTrials() const;
  absl::Status ReadDetails(Stored& stored);
  absl::Status ReadStudyAttributes();
  absl::Status ReadTrialAttributes(Stored& stored);
  void Keep(const std::string& key, const std::string& text, Attributes& attributes);
  absl::Status ReadParams(Stored& stored) const;
  absl::Status ReadMeasurements(Stored& stored) const;
  absl::StatusOr<TrialOutcome> OutcomeOf(const Stored& stored) const;
  absl::StatusOr<std::optional<TrialOutcome>> OwnOutcome(const Stored& stored) const;
  absl::StatusOr<Metrics> ReadValues(const Stored& stored) const;
  bool LacksParameters(const ParamMap& params) const;

  const std::string path_;
  const StudySpec& study_;
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  int64_t study_id_ = 0;
  OptunaStudy result_;
};

// A number that has a type instead of a value is not finite.
double NumberOf(const Row& row, int value, int type) {
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

absl::StatusOr<ParamValue> ChoiceOf(const Json& attributes, double index) {
  const auto choices = attributes.find("choices");
  const bool is_list = choices != attributes.end() && choices->is_array();
  if (!is_list || !(index >= 0.0 && index < static_cast<double>(choices->size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected the index of a choice, got ", index, " of ",
                     is_list ? DescribeJson(*choices) : "no choices"));
  }
  return ParamFromJson((*choices)[static_cast<size_t>(index)]);
}

// What Optuna shows for a stored number.
absl::StatusOr<ParamValue> ValueOf(double stored, const std::string& distribution) {
  HPO_ASSIGN_OR_RETURN(const Json json, ParseJson(distribution));
  const bool known = json.is_object() && json.value("name", Json()).is_string() &&
                     json.value("attributes", Json()).is_object();
  const std::string name = known ? json["name"].get<std::string>() : "";
  if (name == "CategoricalDistribution") return ChoiceOf(json["attributes"], stored);
  if (name == "IntDistribution" && std::abs(stored) <= 0x1p53) {
    return static_cast<int64_t>(std::llround(stored));
  }
  if (name == "FloatDistribution") return stored;
  return absl::InvalidArgumentError(
      absl::StrCat("expected an IntDistribution, a FloatDistribution or a CategoricalDistribution "
                   "and its value, got ",
                   stored, " of ", DescribeJson(json)));
}

absl::Status Reader::Select(const char* sql, const Json& values, const TakeRow& take) const {
  const StatementPointer statement = BindStatement(database_.get(), sql, values);
  int code = statement == nullptr ? SQLITE_ERROR : sqlite3_step(statement.get());
  for (; code == SQLITE_ROW; code = sqlite3_step(statement.get())) {
    HPO_RETURN_IF_ERROR(take(Row(statement.get())));
  }
  if (code == SQLITE_DONE) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot read ", path_, ": ", sqlite3_errmsg(database_.get())));
}

absl::Status Reader::Open() {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path_, ": ", sqlite3_errmsg(opened)));
  }
  sqlite3_busy_timeout(opened, 5000);
  int64_t schema = 0;
  const absl::Status read =
      Select("SELECT schema_version FROM version_info", Json::array(), [&](const Row& row) {
        schema = row.Int(0);
        return absl::OkStatus();
      });
  if (read.ok() && schema == kOptunaSchema) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path_, ": expected a database of Optuna's with schema ", kOptunaSchema, ", got ",
      read.ok() ? absl::StrCat("schema ", schema, "; `optuna storage upgrade` brings older ones up")
                : "another file"));
}

absl::Status Reader::FindStudy(const std::string& name) {
  std::map<std::string, int64_t> studies;
  HPO_RETURN_IF_ERROR(
      Select("SELECT study_id, study_name FROM studies", Json::array(), [&](const Row& row) {
        studies[row.Text(1)] = row.Int(0);
        return absl::OkStatus();
      }));
  const auto found = name.empty() && studies.size() == 1 ? studies.begin() : studies.find(name);
  if (found == studies.end()) {
    const std::string names = absl::StrJoin(
        studies, ", ", [](std::string* out, const auto& entry) { out->append(entry.first); });
    return absl::NotFoundError(absl::StrCat(path_, ": expected one of its studies (", names,
                                            "), got ", name.empty() ? "no name" : name));
  }
  result_.name = found->first;
  study_id_ = found->second;
  return absl::OkStatus();
}

absl::Status Reader::CheckDirections() const {
  std::vector<std::string> got;
  HPO_RETURN_IF_ERROR(
      Select("SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective",
             Json::array({study_id_}), [&](const Row& row) {
               got.push_back(row.Text(0));
               return absl::OkStatus();
             }));
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
  return Select(
      "SELECT value_json FROM study_system_attributes WHERE study_id = ? AND \"key\" = "
      "'study:metric_names'",
      Json::array({study_id_}), [&](const Row& row) -> absl::Status {
        HPO_ASSIGN_OR_RETURN(const Json got, ParseJson(row.Text(0)));
        if (got == expected) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat("metrics: expected ", DumpJson(expected),
                                                       " as in study ", study_.name, ", got ",
                                                       DumpJson(got)));
      });
}

absl::StatusOr<std::vector<Reader::Stored>> Reader::ReadTrials() const {
  std::vector<Stored> trials;
  HPO_RETURN_IF_ERROR(
      Select("SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials WHERE "
             "study_id = ? ORDER BY number",
             Json::array({study_id_}), [&](const Row& row) {
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

absl::Status Reader::ReadParams(Stored& stored) const {
  return Select(
      "SELECT param_name, param_value, distribution_json FROM trial_params WHERE trial_id = ?",
      Json::array({stored.id}), [&](const Row& row) -> absl::Status {
        const std::string name = row.Text(0);
        absl::StatusOr<ParamValue> value = ValueOf(row.Real(1), row.Text(2));
        if (!value.ok()) return Annotate(value.status(), absl::StrCat("parameter ", name));
        stored.trial.params[name] = *std::move(value);
        return absl::OkStatus();
      });
}

absl::Status Reader::ReadMeasurements(Stored& stored) const {
  return Select(
      "SELECT step, intermediate_value, intermediate_value_type FROM trial_intermediate_values "
      "WHERE trial_id = ? ORDER BY step",
      Json::array({stored.id}), [&](const Row& row) {
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
  return Select("SELECT \"key\", value_json FROM study_user_attributes WHERE study_id = ?",
                Json::array({study_id_}), [&](const Row& row) {
                  Keep(row.Text(0), row.Text(1), result_.attributes);
                  return absl::OkStatus();
                });
}

absl::Status Reader::ReadTrialAttributes(Stored& stored) {
  return Select("SELECT \"key\", value_json FROM trial_user_attributes WHERE trial_id = ?",
                Json::array({stored.id}), [&](const Row& row) -> absl::Status {
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
      Select("SELECT objective, value, value_type FROM trial_values WHERE trial_id = ?",
             Json::array({stored.id}), [&](const Row& row) {
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

bool Reader::LacksParameters(const ParamMap& params) const {
  return std::any_of(study_.space.parameters.begin(), study_.space.parameters.end(),
                     [&params](const Parameter& parameter) {
                       return parameter.when.empty() && !params.contains(parameter.name);
                     });
}

absl::StatusOr<OptunaStudy> Reader::Read(const std::string& name) {
  HPO_RETURN_IF_ERROR(FindStudy(name));
  const std::string place = absl::StrCat(path_, ": study ", result_.name);
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
        Annotate(ReadDetails(stored), absl::StrCat(path_, ": ", stored.trial.origin)));
    if (stored.state == "FAIL" && LacksParameters(stored.trial.params)) {
      ++result_.num_incomplete;
      continue;
    }
    result_.trials.push_back(std::move(stored.trial));
  }
  return std::move(result_);
}

}  // namespace

absl::StatusOr<OptunaStudy> ReadOptunaStudy(const std::string& path, const std::string& name,
                                            const StudySpec& study) {
  Reader reader(path, study);
  HPO_RETURN_IF_ERROR(reader.Open());
  return reader.Read(name);
}

}  // namespace hpo
