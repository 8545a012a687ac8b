#include "common/study/metric_constraint.h"

#include <cmath>
#include <limits>

#include "common/study/study_fields.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const MetricConstraint kLatency = {.metric = "ms", .at_most = 50.0};
const MetricConstraint kRecall = {.metric = "recall", .at_least = 0.5};
const MetricConstraint kBand = {.metric = "size", .at_least = 1.0, .at_most = 2.0};
const MetricConstraint kZero = {.metric = "drift", .at_most = 0.0};

TEST(MetricConstraint, ExcessIsTheDistanceBeyondTheNearerLimit) {
  const struct {
    MetricConstraint constraint;
    double value;
    double excess;
    double share;
  } cases[] = {
      {kLatency, 50.0, 0.0, 0.0},
      {kLatency, 75.0, 25.0, 0.5},
      {kLatency, 25.0, -25.0, -0.5},
      {kRecall, 0.25, 0.25, 0.5},
      {kRecall, 1.0, -0.5, -1.0},
      {kBand, 1.5, -0.5, -0.25},
      {kBand, 0.5, 0.5, 0.5},
      {kBand, 3.0, 1.0, 0.5},
      {kZero, 3.0, 3.0, 3.0},
      {kLatency, -50.0, -100, -2},
      {kLatency, std::nan(""), kInfinity, kInfinity},
      {kLatency, -kInfinity, kInfinity, kInfinity},
  };
  for (const auto& [constraint, value, excess, share] : cases) {
    SCOPED_TRACE(testing::Message() << constraint.metric << " " << value);
    const std::map<std::string, double> metrics = {{constraint.metric, value}};
    EXPECT_EQ(ExcessOf(constraint, metrics), excess);
    EXPECT_EQ(ExcessesOf({constraint}, metrics), std::vector<double>{share});
    EXPECT_EQ(ViolationOf({constraint}, metrics), std::max(share, 0.0));
  }
}

TEST(MetricConstraint, ViolationIsTheSumAndWithoutAReportInfinite) {
  EXPECT_EQ(ViolationOf({kLatency, kRecall}, {{"ms", 75.0}, {"recall", 0.25}}), 1.0);
  EXPECT_EQ(ViolationOf({kLatency, kRecall}, {{"ms", 5.0}, {"recall", 0.25}}), 0.5);
  EXPECT_EQ(ViolationOf({kLatency, kRecall}, {{"ms", 5.0}}), kInfinity);
  EXPECT_EQ(ViolationOf({}, {}), 0.0);
}

TEST(MetricConstraint, IsDescribedAndStored) {
  EXPECT_EQ(DescribeConstraint(kLatency), "ms at most 50");
  EXPECT_EQ(DescribeConstraint(kRecall), "recall at least 0.5");
  EXPECT_EQ(DescribeConstraint(kBand), "size at least 1 and at most 2");
  for (const MetricConstraint& constraint : {kLatency, kRecall, kBand, kZero}) {
    EXPECT_EQ(FromJson<MetricConstraint>(ToJson(constraint)).value(), constraint);
    EXPECT_TRUE(ValidateConstraint(constraint).ok());
  }
}

TEST(MetricConstraint, RefusesWhatLimitsNothing) {
  const std::pair<MetricConstraint, const char*> cases[] = {
      {{.metric = "", .at_most = 1.0}, "metric: expected a name, got nothing"},
      {{.metric = "ms"}, "expected at_least, at_most or both for ms, got neither"},
      {{.metric = "ms", .at_most = std::nan("")}, "at_most: expected a finite number, got nan"},
      {{.metric = "ms", .at_least = -kInfinity}, "at_least: expected a finite number, got -inf"},
      {{.metric = "ms", .at_least = 5.0, .at_most = 3.0},
       "expected at_least <= at_most for ms, got 5 and 3"},
  };
  for (const auto& [constraint, message] : cases) {
    EXPECT_EQ(ValidateConstraint(constraint).message(), message);
  }
}

}  // namespace
}  // namespace hpo
