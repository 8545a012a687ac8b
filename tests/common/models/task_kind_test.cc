#include "common/models/task_kind.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace hpo {
namespace {

constexpr TaskKind kAllKinds[] = {TaskKind::kTextClassification, TaskKind::kTextRegression,
                                  TaskKind::kLanguageModeling, TaskKind::kMultiQuery,
                                  TaskKind::kMultiQuerySpans};

TEST(TaskKindTest, NamesAreReadBack) {
  EXPECT_EQ(ParseTaskKind("text-classification"), TaskKind::kTextClassification);
  for (const TaskKind kind : kAllKinds) EXPECT_EQ(ParseTaskKind(Name(kind)), kind) << Name(kind);
  EXPECT_EQ(TaskNames(),
            "text-classification, text-regression, language-modeling, multi-query or "
            "multi-query-spans");
  for (const char* name : {"", "Text-classification", "text-classification ", "ner"}) {
    EXPECT_EQ(ParseTaskKind(name), std::nullopt) << name;
  }
}

TEST(TaskKindTest, MetricsAreSortedAndTakenByTheirTask) {
  for (const TaskKind kind : kAllKinds) {
    const auto metrics = MetricsOf(kind);
    EXPECT_TRUE(std::is_sorted(metrics.begin(), metrics.end()));
    EXPECT_TRUE(CheckMetric(kind, "loss").ok()) << Name(kind);
    for (const absl::string_view metric : metrics) {
      EXPECT_TRUE(CheckMetric(kind, metric).ok()) << metric;
    }
  }
}

TEST(TaskKindTest, SpansAreMeasuredWhereTheyAreAskedFor) {
  EXPECT_TRUE(CheckMetric(TaskKind::kMultiQuerySpans, "opinion_f1").ok());
  EXPECT_FALSE(CheckMetric(TaskKind::kMultiQuery, "opinion_f1").ok());
  for (const char* metric : {"quadruplet_f1", "quadruplet_cf1"}) {
    EXPECT_TRUE(CheckMetric(TaskKind::kMultiQuerySpans, metric).ok()) << metric;
    EXPECT_FALSE(CheckMetric(TaskKind::kMultiQuery, metric).ok()) << metric;
  }
  for (const absl::string_view metric : MetricsOf(TaskKind::kMultiQuery)) {
    EXPECT_TRUE(CheckMetric(TaskKind::kMultiQuerySpans, metric).ok()) << metric;
  }
  for (const TaskKind kind : kAllKinds) {
    EXPECT_EQ(AsksQueries(kind), CheckMetric(kind, "va_rmse").ok()) << Name(kind);
  }
}

TEST(TaskKindTest, AMetricThatATaskHasNotIsOneLineWithThoseItHas) {
  const absl::Status status = CheckMetric(TaskKind::kTextClassification, "perplexity");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "expected accuracy, loss, macro_f1, mcc or micro_f1 (the metrics of "
            "text-classification), got 'perplexity'");
}

// What another trainer measures is not ours to judge.
TEST(TaskKindTest, AStudysMetricIsRefusedWhereItIsAnotherTasks) {
  EXPECT_TRUE(CheckMetricFits(TaskKind::kTextRegression, "rmse").ok());
  EXPECT_TRUE(CheckMetricFits(TaskKind::kTextRegression, "concordance").ok());
  EXPECT_EQ(CheckMetricFits(TaskKind::kTextRegression, "macro_f1").message(),
            "expected loss, mae, pearson or rmse (the metrics of "
            "text-regression), got 'macro_f1'");
}

}  // namespace
}  // namespace hpo
