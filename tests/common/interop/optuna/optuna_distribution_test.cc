#include "common/interop/optuna/optuna_distribution.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;

TEST(PythonJson, TakesWhatPythonWrites) {
  const char* const good[] = {"NaN",
                              "-Infinity",
                              R"({"a": [Infinity, -Infinity, NaN, -1.5e-3], "b": "NaN"})",
                              R"("a \" NaN \\")",
                              R"("\\")",
                              "null",
                              "\"\\u00e9\""};
  for (const char* text : good) EXPECT_TRUE(ParsePythonJson(text).ok()) << text;
  const char* const bad[] = {"",        "{",   "nan",     "+Infinity", "NaNNaN",
                             "[NaN,]",  "\"a", "\"a\\\"", "{NaN:1}",   "- Infinity",
                             "[1] [2]", "'a'", "\\"};
  for (const char* text : bad) EXPECT_FALSE(ParsePythonJson(text).ok()) << text;
}

TEST(PythonJson, WhatIsNotFiniteEqualsItselfAlone) {
  const auto parse = [](const char* text) { return ParsePythonJson(text).value(); };
  EXPECT_EQ(parse("[NaN, 1]"), parse("[NaN,1]"));
  EXPECT_NE(parse("[NaN]"), parse("[Infinity]"));
  EXPECT_NE(parse("[NaN]"), parse("[\"NaN\"]"));
  EXPECT_NE(parse("Infinity"), parse("-Infinity"));
}

std::string Distribution(const std::string& name, const std::string& attributes) {
  return absl::StrCat("{\"name\": \"", name, "\", \"attributes\": {", attributes, "}}");
}

TEST(OptunaDistribution, IsOneThatOptunaCanMakeAgain) {
  const std::pair<const char*, const char*> good[] = {
      {"FloatDistribution", R"("low": 0.0, "high": 1.0, "log": false, "step": 0.25)"},
      {"FloatDistribution", R"("low": 1e-5, "high": 1.0, "log": true, "step": null)"},
      {"IntDistribution", R"("low": -3, "high": -3, "log": false, "step": 2)"},
      {"IntDistribution", R"("low": 1, "high": 3, "log": true, "step": 1)"},
      {"CategoricalDistribution", R"("choices": [null, true, 1, "a", NaN])"},
      {"LogUniformDistribution", R"("low": 0.1, "high": 1.0)"},
  };
  for (const auto& [name, attributes] : good) {
    const auto parsed = ParseOptunaDistribution(Distribution(name, attributes));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
  }
  const std::pair<std::string, const char*> bad[] = {
      {"1", "expected a FloatDistribution"},
      {R"({"name": "FloatDistribution"})", "expected a FloatDistribution"},
      {Distribution("NormalDistribution", R"("low": 0, "high": 1)"),
       "expected a FloatDistribution"},
      {Distribution("FloatDistribution", R"("low": 2, "high": 1)"), "low <= high, got"},
      {Distribution("FloatDistribution", R"("low": 0, "high": Infinity)"), "low <= high, got"},
      {Distribution("FloatDistribution", R"("low": 0, "high": 1, "log": true)"), "low > 0"},
      {Distribution("IntDistribution", R"("low": 1, "high": 2, "log": 1)"), "true or false"},
      {Distribution("IntDistribution", R"("low": 1, "high": 2, "step": 0)"), "a step > 0"},
      {Distribution("IntDistribution", R"("low": 1, "high": 2, "log": true, "step": 2)"),
       "none on a log scale"},
      {Distribution("CategoricalDistribution", R"("choices": [])"), "expected choices"},
      {Distribution("CategoricalDistribution", R"("low": 1)"), "expected choices"},
  };
  for (const auto& [text, message] : bad) {
    const auto parsed = ParseOptunaDistribution(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace hpo
