#include <cmath>
#include <limits>

#include "common/base/json_reader.h"
#include "common/study/trial_fields.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::vector<Measurement>> Read(const nlohmann::json& json) {
  return FromJson<std::vector<Measurement>>(json);
}

TEST(TrialMeasurement, EveryBitComesBackFromText) {
  const std::vector<Measurement> measurements = {
      {.step = 75, .epoch = 0.1 + 0.2, .metrics = {{"macro_f1", 2.0 / 3.0}}},
      {.step = 148, .metrics = {{"loss", std::numeric_limits<double>::denorm_min()}}}};
  const auto again = Read(ParseJson(DumpJson(ToJson(measurements))).value());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, measurements);
  EXPECT_EQ(Read(ToJson(std::vector<Measurement>())).value(), std::vector<Measurement>());
}

TEST(TrialMeasurement, WhatIsInfiniteComesBackAsItWas) {
  const double infinity = std::numeric_limits<double>::infinity();
  const nlohmann::json json = ToJson(Measurement{.step = 1, .metrics = {{"loss", infinity}}});
  EXPECT_EQ(json["metrics"]["loss"], "Infinity");
  const auto again = Read(nlohmann::json::array({json}));
  EXPECT_EQ(again->front().metrics.at("loss"), infinity);
}

TEST(TrialMeasurement, AnEpochMayBeMissing) {
  const auto read = Read(ParseJson(R"([{"step": 3, "metrics": {"f1": 1}}])").value());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->front(), (Measurement{.step = 3, .metrics = {{"f1", 1.0}}}));
}

TEST(TrialMeasurement, ErrorsNameElementAndMember) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "expected an array, got an object"},
      {R"([3])", "[0]: expected an object"},
      {R"([{"step": 1, "metrics": {}}, {"metrics": {}}])", "[1]: step: missing"},
      {R"([{"step": 1}])", "[0]: metrics: missing"},
      {R"([{"step": "one", "metrics": {}}])", "[0]: step: expected an integer"},
      {R"([{"step": 1, "epoch": [], "metrics": {}}])", "[0]: epoch: expected"},
      {R"([{"step": 1, "metrics": {"f1": "high"}}])", "[0]: metrics"}};
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const auto read = Read(ParseJson(text).value());
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace hpo
