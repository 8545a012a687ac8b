// How a study stops trials early: the `pruner:` of its file. The pruners themselves are in
// sampler/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// One struct for every type; PrunerTakes says which members a type reads, by their keys in
// common/study/study_fields.h. Values are in the metric's own unit, steps are optimizer steps as
// the trainer reports them.
struct PrunerSpec {
  // predictive | median | percentile | threshold | patient | asha | hyperband | wilcoxon | none
  std::string type = "predictive";
  // Completed trials before the first decision (median, percentile).
  int64_t startup_trials = 5;
  // Decide at the first report at or after warmup_steps + k * interval_steps (predictive, median,
  // percentile, threshold).
  int64_t warmup_steps = 0;
  int64_t interval_steps = 1;
  // Completed trials that must have reported at the same step (median, percentile).
  int64_t min_trials = 1;
  // Keep the best so many per cent.
  double percentile = 25.0;
  // Stop outside [lower, upper]; nullopt: no limit on that side.
  std::optional<double> lower;
  std::optional<double> upper;
  // Stop, or ask `wrapped`, when the last patience + 1 reports improved nothing by min_delta.
  int64_t patience = 5;
  double min_delta = 0.0;
  std::string wrapped = "none";  // any type but patient; its members stand beside it
  // Steps of the first rung. nullopt: asha, a hundredth of the longest completed trial;
  // hyperband, 1.
  std::optional<int64_t> min_resource;
  // Steps of the longest trial (hyperband). nullopt: one more than the longest completed trial has.
  std::optional<int64_t> max_resource;
  // One of so many trials goes on at each rung. nullopt: asha 4, hyperband 3.
  std::optional<int64_t> reduction_factor;
  // Rungs left out at the start (asha).
  int64_t min_early_stopping_rate = 0;
  // The first so many trials at a rung stop there (asha, hyperband).
  int64_t bootstrap_count = 0;
  // Stop where the signed-rank test's p is below (wilcoxon), with at least max(2, startup_steps)
  // steps in common.
  double p_threshold = 0.1;
  int64_t startup_steps = 2;
  bool operator==(const PrunerSpec&) const = default;
};

// Whether `key` says something to the spec's type, or to the type that a patient one wraps.
bool PrunerTakes(const PrunerSpec& spec, absl::string_view key);

//   InvalidArgument  an unknown type, or a member out of range; names it: "pruner.percentile: ..."
absl::Status ValidatePruner(const PrunerSpec& spec);

// Canonical JSON: the type and the members it takes. FromJson accepts what ToJson wrote; a member
// that is missing has its default.
//   InvalidArgument  a member of another type; names it
nlohmann::json PrunerToJson(const PrunerSpec& spec);
absl::StatusOr<PrunerSpec> PrunerFromJson(const nlohmann::json& json);

}  // namespace hpo
