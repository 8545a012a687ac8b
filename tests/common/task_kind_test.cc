#include "common/task_kind.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace hpo {
namespace {

TEST(TaskKindTest, NamesAreReadBack) {
  EXPECT_EQ(ParseTaskKind("text-classification"), TaskKind::kTextClassification);
  EXPECT_EQ(Name(TaskKind::kTextClassification), "text-classification");
  for (const char* name : {"", "Text-classification", "text-classification ", "ner"}) {
    EXPECT_EQ(ParseTaskKind(name), std::nullopt) << name;
  }
}

TEST(TaskKindTest, MetricsAreSortedAndTakenByTheirTask) {
  const auto metrics = MetricsOf(TaskKind::kTextClassification);
  EXPECT_TRUE(std::is_sorted(metrics.begin(), metrics.end()));
  for (const absl::string_view metric : metrics) {
    EXPECT_TRUE(CheckMetric(TaskKind::kTextClassification, metric).ok()) << metric;
  }
}

TEST(TaskKindTest, AMetricThatATaskHasNotIsOneLineWithThoseItHas) {
  const absl::Status status = CheckMetric(TaskKind::kTextClassification, "perplexity");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "objective.metric: expected accuracy, loss, macro_f1, mcc or micro_f1 (the metrics of "
            "text-classification), got 'perplexity'");
}

}  // namespace
}  // namespace hpo
