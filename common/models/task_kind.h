// The tasks of hpo-trainer and what it measures on each. Other trainers have tasks and metrics of
// their own, which nothing here speaks of.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hpo {

enum class TaskKind {
  kTextClassification,
  kTextRegression,
  kLanguageModeling,
  kMultiQuery,
  kMultiQuerySpans,  // kMultiQuery, and which words of a text are its aspects and opinions
};

// "text-classification". Parse returns nullopt for another name.
absl::string_view Name(TaskKind kind);
std::optional<TaskKind> ParseTaskKind(absl::string_view name);

// Whether a row of the data is a text of which several queries are asked.
bool AsksQueries(TaskKind kind);

// All names, for people: "a, b or c".
std::string TaskNames();

// The metrics of a validation that a study may optimize, sorted.
std::span<const absl::string_view> MetricsOf(TaskKind kind);

// Whether hpo-trainer measures `metric` on `kind`.
//   InvalidArgument  it does not; names the task and its metrics
absl::Status CheckMetric(TaskKind kind, absl::string_view metric);

// Refuses a metric that another task of hpo-trainer has and `kind` has not. Names of nobody's are
// let pass: another trainer may measure what it likes.
//   InvalidArgument  as CheckMetric
absl::Status CheckMetricFits(TaskKind kind, absl::string_view metric);

}  // namespace hpo
