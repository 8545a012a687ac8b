#include "common/study/pruner_spec.h"

#include <cmath>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

TEST(PrunerSpec, EveryTypeSurvivesItsJson) {
  const PrunerSpec specs[] = {
      {},
      {.type = "none", .startup_trials = 1, .warmup_steps = 2, .interval_steps = 3},
      {.type = "median", .startup_trials = 1, .min_trials = 4},
      {.type = "percentile", .warmup_steps = 7, .percentile = 33.3},
      {.type = "threshold", .upper = 0.1},
      {.type = "threshold", .interval_steps = 2, .lower = -1.5, .upper = 3.0},
      {.type = "patient", .patience = 0, .min_delta = 0.25},
      {.type = "patient", .lower = 0.5, .patience = 3, .wrapped = "threshold"},
      {.type = "asha"},
      {.type = "asha", .min_resource = 3, .reduction_factor = 2, .min_early_stopping_rate = 1},
      {.type = "hyperband", .max_resource = 81, .bootstrap_count = 2},
      {.type = "wilcoxon", .p_threshold = 0.05, .startup_steps = 5},
  };
  for (const PrunerSpec& spec : specs) {
    const nlohmann::json json = PrunerToJson(spec);
    SCOPED_TRACE(json.dump());
    EXPECT_TRUE(ValidatePruner(spec).ok()) << ValidatePruner(spec);
    const auto again = PrunerFromJson(nlohmann::json::parse(json.dump()));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, spec);
  }
}

TEST(PrunerSpec, ReadsWhatWasStoredBeforeThereWereOthers) {
  const auto spec = PrunerFromJson(nlohmann::json::parse(
      R"({"type": "median", "startup_trials": 3, "warmup_steps": 1, "interval_steps": 2})"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(
      *spec,
      (PrunerSpec{.type = "median", .startup_trials = 3, .warmup_steps = 1, .interval_steps = 2}));
}

TEST(PrunerSpec, WritesOnlyWhatTheTypeTakes) {
  EXPECT_EQ(PrunerToJson({.type = "wilcoxon"}),
            nlohmann::json({{"type", "wilcoxon"}, {"p_threshold", 0.1}, {"startup_steps", 2}}));
  EXPECT_EQ(
      PrunerToJson({.type = "asha"}),
      nlohmann::json({{"type", "asha"}, {"min_early_stopping_rate", 0}, {"bootstrap_count", 0}}));
}

TEST(PrunerSpec, JsonErrorsNameTheMember) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "expected an object, got an array"},
      {R"({})", "type: missing"},
      {R"({"type": "asha", "min_resource": "much"})", "min_resource: expected an integer"},
      {R"({"type": "threshold", "lower": "low"})", "lower: expected a number"},
  };
  for (const auto& [json, expected] : cases) {
    SCOPED_TRACE(json);
    const auto spec = PrunerFromJson(nlohmann::json::parse(json));
    ASSERT_FALSE(spec.ok());
    EXPECT_TRUE(absl::StartsWith(spec.status().message(), expected)) << spec.status();
  }
}

TEST(ValidatePruner, NamesTheMemberAtFault) {
  const std::pair<PrunerSpec, const char*> cases[] = {
      {{.type = "bohb"},
       "pruner.type: expected predictive, median, percentile, threshold, patient, asha, hyperband, "
       "wilcoxon or "
       "none, got 'bohb'"},
      {{.type = "patient", .wrapped = "patient"},
       "pruner.wrapped: expected predictive, median, percentile, threshold, asha, hyperband, "
       "wilcoxon or none, "
       "got 'patient'"},
      {{.startup_trials = -1}, "pruner.startup_trials: expected >= 0, got -1"},
      {{.warmup_steps = -1}, "pruner.warmup_steps: expected >= 0, got -1"},
      {{.interval_steps = 0}, "pruner.interval_steps: expected >= 1, got 0"},
      {{.min_trials = 0}, "pruner.min_trials: expected >= 1, got 0"},
      {{.percentile = -0.5}, "pruner.percentile: expected between 0 and 100, got -0.5"},
      {{.percentile = std::nan("")}, "pruner.percentile: expected between 0 and 100, got nan"},
      {{.type = "threshold"}, "pruner.type: threshold needs lower, upper or both, got none"},
      {{.type = "threshold", .lower = 2.0, .upper = 1.0},
       "pruner.lower: expected at most upper, 1, got 2"},
      {{.type = "threshold", .upper = std::nan("")},
       "pruner.upper: expected a finite number, got nan"},
      {{.type = "patient", .wrapped = "threshold"},
       "pruner.type: threshold needs lower, upper or both, got none"},
      {{.patience = -1}, "pruner.patience: expected between 0 and 1e+12, got -1"},
      {{.min_delta = -0.1}, "pruner.min_delta: expected >= 0, got -0.1"},
      {{.type = "asha", .min_resource = 0},
       "pruner.min_resource: expected between 1 and 1e+12, got 0"},
      {{.type = "asha", .reduction_factor = 1},
       "pruner.reduction_factor: expected between 2 and 1e+12, got 1"},
      {{.type = "asha", .min_early_stopping_rate = -1},
       "pruner.min_early_stopping_rate: expected >= 0, got -1"},
      {{.type = "asha", .bootstrap_count = 1},
       "pruner.bootstrap_count: expected 0 where min_resource is not given, got 1"},
      {{.type = "hyperband", .bootstrap_count = 1},
       "pruner.bootstrap_count: expected 0 where max_resource is not given, got 1"},
      {{.type = "hyperband", .min_resource = 3, .max_resource = 2},
       "pruner.max_resource: expected at least min_resource, 3, got 2"},
      {{.p_threshold = 1.5}, "pruner.p_threshold: expected between 0 and 1, got 1.5"},
      {{.startup_steps = -1}, "pruner.startup_steps: expected >= 0, got -1"},
  };
  for (const auto& [spec, expected] : cases) {
    EXPECT_EQ(ValidatePruner(spec), absl::InvalidArgumentError(expected));
  }
}

}  // namespace
}  // namespace hpo
