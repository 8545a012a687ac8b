#include "server/analysis/analysis_api.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/studies/trial_writer.h"
#include "server/table/history_sample.h"
#include "server/table/table_page.h"

namespace hpo::server {
namespace {

constexpr size_t kMostKept = 64;  // answers of importance
constexpr int kDefaultCurves = 50;
constexpr int kDefaultPoints = 200;
constexpr int kMostLookedAt = 2000;
constexpr int kDefaultAttempts = 2000;

// A column has whole numbers as doubles: a choice has the type that the search space gives it.
ParamValue Typed(const Domain& domain, ParamValue value) {
  const auto* const categorical = std::get_if<CategoricalDomain>(&domain);
  const std::optional<double> number = AsNumber(value);
  if (categorical == nullptr || !number) return value;
  for (const ParamValue& choice : categorical->choices) {
    if (AsNumber(choice) == number) return choice;
  }
  return value;
}

bool IsAssessed(const TrialColumns& columns, const Column& metric, size_t row) {
  const RowKind kind = columns.KindAt(row);
  const bool is_completed = kind == RowKind::kCompleted || kind == RowKind::kInfeasible;
  return is_completed && !columns.IsDemonstration(row) && metric.CodeAt(row) == Column::kNumber &&
         std::isfinite(metric.NumberAt(row));
}

// The completed trials that have a finite value of the objective.
std::vector<AssessedTrial> AssessedTrials(const TrialColumns& columns, const SearchSpace& space,
                                          const Objective& objective) {
  std::vector<AssessedTrial> trials;
  const Column* const metric = columns.Find("metric:" + objective.metric);
  if (metric == nullptr) return trials;
  std::vector<std::pair<const Parameter*, const Column*>> held;
  for (const Parameter& parameter : space.parameters) {
    const Column* const column = columns.Find("param:" + parameter.name);
    if (parameter.modelled && column != nullptr) held.emplace_back(&parameter, column);
  }
  for (size_t row = 0; row < columns.num_rows(); ++row) {
    if (!IsAssessed(columns, *metric, row)) continue;
    AssessedTrial& trial = trials.emplace_back();
    trial.loss = LossOf(objective, metric->NumberAt(row));
    for (const auto& [parameter, column] : held) {
      std::optional<ParamValue> value = column->At(row);
      if (value) trial.params[parameter->name] = Typed(parameter->domain, *std::move(value));
    }
  }
  return trials;
}

// The attempt whose measurements tell about the trial.
absl::StatusOr<AttemptNumber> ToldAttempt(Database& database, int64_t study_id,
                                          TrialNumber number) {
  Statement row = database.Prepare(
      "SELECT CASE result_attempt WHEN 0 THEN current_attempt ELSE result_attempt END FROM trial "
      "WHERE study_id = ?1 AND number = ?2");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study_id, number.value).Next());
  return found ? AttemptNumber{row.Int(0)} : kNoAttempt;
}

// The trials to look at, newest first, with the letters of their states.
absl::Status ChooseTrials(const StudySpec& spec, const TrialColumns& columns,
                          const CurvesQuery& query, CurvesAnswer& answer) {
  std::vector<int64_t> numbers;
  for (const TrialNumber number : query.numbers) {
    if (number.value >= static_cast<int64_t>(columns.num_rows())) {
      return absl::NotFoundError(absl::StrCat("numbers: expected trials of ", spec.name,
                                              ", which has ", columns.num_rows(), "; got ",
                                              number.value));
    }
    numbers.push_back(number.value);
  }
  if (numbers.empty()) {
    HPO_ASSIGN_OR_RETURN(TablePage page, MakeTablePage(columns, spec,
                                                       {.where = query.where,
                                                        .sort = "-number",
                                                        .columns = {"number"},
                                                        .page_size = kMostLookedAt}));
    numbers = std::move(page.numbers);
  }
  for (const int64_t number : numbers) {
    answer.curves.push_back({.number = TrialNumber{number},
                             .state = LetterOf(columns.KindAt(static_cast<size_t>(number)))});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportanceAnswer> AnalysisApi::GetImportance(const std::string& study,
                                                            const std::string& metric,
                                                            ImportanceMethod method) const {
  ImportanceAnswer answer;
  StudySpec spec;
  std::vector<AssessedTrial> trials;
  StudyRuntime::Identity identity;
  const auto take = [&](const StudyRuntime& runtime, const TrialColumns& columns,
                        int64_t sequence) -> absl::Status {
    spec = runtime.spec();
    identity = runtime.identity();
    HPO_ASSIGN_OR_RETURN(const Objective objective, FindObjective(spec, metric, "metric"));
    trials = AssessedTrials(columns, spec.space, objective);
    answer.metric = objective.metric;
    answer.num_trials = static_cast<int64_t>(trials.size());
    answer.sequence = sequence;
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(tables_.Use(study, take));
  // One after the other: who asks for the same meanwhile gets what the first one has found.
  absl::MutexLock lock(&mutex_);
  const ImportanceKey key{identity, answer.metric, method};
  const auto found = kept_.find(key);
  // Completed trials stay as they are, so that as many are the same ones.
  if (found != kept_.end() && found->second.answer.num_trials == answer.num_trials &&
      found->second.space == spec.space) {
    answer.assessment = found->second.answer.assessment;
    return answer;
  }
  absl::StatusOr<ImportanceAssessment> assessment = AssessImportance(spec.space, trials, method);
  if (!assessment.ok()) return Annotate(assessment.status(), absl::StrCat("study ", spec.name));
  answer.assessment = *std::move(assessment);
  if (kept_.size() >= kMostKept) kept_.clear();
  kept_.insert_or_assign(key, KeptImportance{.space = spec.space, .answer = answer});
  return answer;
}

absl::StatusOr<CurvesAnswer> AnalysisApi::GetCurves(const std::string& study,
                                                    const CurvesQuery& query) const {
  CurvesAnswer answer;
  int64_t study_id = 0;
  std::string name;
  const auto choose = [&](const StudyRuntime& runtime, const TrialColumns& columns,
                          int64_t sequence) {
    const StudySpec spec = runtime.spec();
    study_id = runtime.id();
    name = spec.name;
    answer.metric = query.metric.empty() ? spec.objectives.front().metric : query.metric;
    answer.sequence = sequence;
    return ChooseTrials(spec, columns, query, answer);
  };
  HPO_RETURN_IF_ERROR(tables_.Use(study, choose));
  const auto most = static_cast<size_t>(query.count == 0 ? kDefaultCurves : query.count);
  const auto points = static_cast<size_t>(query.points == 0 ? kDefaultPoints : query.points);
  std::vector<Curve> chosen = std::exchange(answer.curves, {});
  std::set<std::string> metrics;
  const auto read = [&](Database& database) -> absl::Status {
    const AttemptStore attempts(database, study_id, name);
    for (Curve& curve : chosen) {
      if (answer.curves.size() == most) break;
      HPO_ASSIGN_OR_RETURN(const AttemptNumber told, ToldAttempt(database, study_id, curve.number));
      if (told == kNoAttempt) continue;
      HPO_ASSIGN_OR_RETURN(const std::vector<Measurement> measurements,
                           attempts.LoadMeasurements(curve.number, told));
      for (const Measurement& one : measurements) {
        for (const auto& [metric, value] : one.metrics) metrics.insert(metric);
      }
      curve.points = Thinned(PointsOf(measurements, answer.metric), std::max<size_t>(points, 4));
      if (!curve.points.steps.empty()) answer.curves.push_back(std::move(curve));
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(scheduler_.state().store->Read(read));
  answer.metrics.assign(metrics.begin(), metrics.end());
  return answer;
}

absl::StatusOr<Timeline> AnalysisApi::GetTimeline(const std::string& study, int count) const {
  HPO_ASSIGN_OR_RETURN(const StudyRuntime* const runtime, scheduler_.state().studies.Find(study));
  Timeline timeline;
  const auto read = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(
        timeline, ReadTimeline(database, runtime->id(), count == 0 ? kDefaultAttempts : count));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(scheduler_.state().store->Read(read));
  return timeline;
}

}  // namespace hpo::server
