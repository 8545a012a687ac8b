#include "common/models/task_kind.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/one_of.h"

namespace hpo {
namespace {

constexpr absl::string_view kClassificationMetrics[] = {"accuracy", "loss", "macro_f1", "mcc",
                                                        "micro_f1"};

constexpr absl::string_view kRegressionMetrics[] = {"loss", "mae", "pearson", "rmse"};
constexpr absl::string_view kLanguageMetrics[] = {"loss", "perplexity"};

constexpr absl::string_view kQueryMetrics[] = {"accuracy", "arousal_rmse", "loss",
                                               "macro_f1", "va_rmse",      "valence_rmse"};

constexpr absl::string_view kSpanMetrics[] = {
    "accuracy",   "arousal_rmse",   "aspect_f1",     "loss",    "macro_f1",
    "opinion_f1", "quadruplet_cf1", "quadruplet_f1", "va_rmse", "valence_rmse"};

struct TaskLine {
  TaskKind kind;
  absl::string_view name;
  std::span<const absl::string_view> metrics;
};

constexpr TaskLine kTasks[] = {
    {TaskKind::kTextClassification, "text-classification", kClassificationMetrics},
    {TaskKind::kTextRegression, "text-regression", kRegressionMetrics},
    {TaskKind::kLanguageModeling, "language-modeling", kLanguageMetrics},
    {TaskKind::kMultiQuery, "multi-query", kQueryMetrics},
    {TaskKind::kMultiQuerySpans, "multi-query-spans", kSpanMetrics},
};

const TaskLine& LineOf(TaskKind kind) {
  return *std::find_if(std::begin(kTasks), std::end(kTasks),
                       [kind](const TaskLine& line) { return line.kind == kind; });
}

}  // namespace

absl::string_view Name(TaskKind kind) { return LineOf(kind).name; }

std::optional<TaskKind> ParseTaskKind(absl::string_view name) {
  for (const TaskLine& line : kTasks) {
    if (line.name == name) return line.kind;
  }
  return std::nullopt;
}

bool AsksQueries(TaskKind kind) {
  return kind == TaskKind::kMultiQuery || kind == TaskKind::kMultiQuerySpans;
}

std::string TaskNames() {
  std::vector<absl::string_view> names;
  for (const TaskLine& line : kTasks) names.push_back(line.name);
  return OneOf(names);
}

std::span<const absl::string_view> MetricsOf(TaskKind kind) { return LineOf(kind).metrics; }

absl::Status CheckMetric(TaskKind kind, absl::string_view metric) {
  const auto metrics = MetricsOf(kind);
  if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected ", OneOf(metrics), " (the metrics of ",
                                                 Name(kind), "), got '", metric, "'"));
}

absl::Status CheckMetricFits(TaskKind kind, absl::string_view metric) {
  const bool is_ours =
      std::any_of(std::begin(kTasks), std::end(kTasks),
                  [metric](const TaskLine& line) { return CheckMetric(line.kind, metric).ok(); });
  return is_ours ? CheckMetric(kind, metric) : absl::OkStatus();
}

}  // namespace hpo
