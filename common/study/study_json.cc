#include "common/study/study_json.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/space/search_space_json.h"
#include "common/study/study.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr char kAuto[] = "auto";

template <typename Enum>
absl::StatusOr<Enum> NamedFromJson(const nlohmann::json& json,
                                   std::optional<Enum> (*parse)(absl::string_view),
                                   absl::string_view expected) {
  if (json.is_string()) {
    if (const std::optional<Enum> value = parse(json.get<std::string>())) return *value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", expected, ", got ", DescribeJson(json)));
}

nlohmann::json ToJson(const TrainerSpec& trainer) {
  return {{"task", trainer.task},
          {"train", trainer.train},
          {"validation", trainer.validation},
          {"epochs", trainer.epochs},
          {"init", trainer.model_init},
          {"measure_every_steps", trainer.measure_every_steps},
          {"labels", trainer.labels},
          {"defaults", ParamsToJson(trainer.defaults)},
          {"command", trainer.command},
          {"workdir", trainer.workdir}};
}

absl::StatusOr<TrainerSpec> TrainerFromJson(const nlohmann::json& json) {
  TrainerSpec trainer;
  JsonReader reader(json, "");
  reader.Required("task", trainer.task);
  reader.Required("train", trainer.train);
  reader.Required("validation", trainer.validation);
  reader.Required("epochs", trainer.epochs);
  reader.Required("init", trainer.model_init);
  reader.Required("measure_every_steps", trainer.measure_every_steps);
  reader.Required("labels", trainer.labels);
  reader.RequiredWith("defaults", trainer.defaults, ParamsFromJson);
  reader.Optional("command", trainer.command);
  reader.Optional("workdir", trainer.workdir);
  HPO_RETURN_IF_ERROR(reader.status());
  return trainer;
}

nlohmann::json ToJson(const RegretBound& bound) {
  return bound.gap.has_value() ? nlohmann::json(*bound.gap) : nlohmann::json(kAuto);
}

absl::StatusOr<RegretBound> RegretBoundFromJson(const nlohmann::json& json) {
  if (json.is_number()) return RegretBound{.gap = json.get<double>()};
  if (json == kAuto) return RegretBound{};
  return absl::InvalidArgumentError(
      absl::StrCat("expected a number or \"auto\", got ", DescribeJson(json)));
}

// Unlimited is written as null.
nlohmann::json ToJson(const Budget& budget) {
  nlohmann::json json = {{"trials", nullptr}, {"wall_clock_seconds", nullptr}};
  if (budget.trials.has_value()) json["trials"] = *budget.trials;
  if (budget.wall_clock.has_value()) {
    json["wall_clock_seconds"] = absl::ToDoubleSeconds(*budget.wall_clock);
  }
  if (budget.trial_wall_clock.has_value()) {
    json["trial_wall_clock_seconds"] = absl::ToDoubleSeconds(*budget.trial_wall_clock);
  }
  if (budget.no_progress.has_value()) json["no_progress"] = *budget.no_progress;
  if (budget.regret_bound.has_value()) json["regret_bound"] = ToJson(*budget.regret_bound);
  if (budget.target.has_value()) json["target"] = *budget.target;
  // Left out where it says nothing, so that studies stored before it was known read as they were.
  if (budget.failures_in_a_row != Budget().failures_in_a_row) {
    json["failures_in_a_row"] = budget.failures_in_a_row;
  }
  if (budget.failed_share.has_value()) json["failed_share"] = *budget.failed_share;
  return json;
}

absl::StatusOr<Budget> BudgetFromJson(const nlohmann::json& json) {
  int64_t trials = -1;
  double seconds = -1.0;
  double trial_seconds = -1.0;
  int64_t no_progress = -1;
  double failed_share = -1.0;
  Budget budget;
  JsonReader reader(json, "");
  reader.Optional("trials", trials);
  reader.Optional("wall_clock_seconds", seconds);
  reader.Optional("trial_wall_clock_seconds", trial_seconds);
  reader.Optional("no_progress", no_progress);
  std::optional<RegretBound> regret_bound;
  reader.OptionalWith("regret_bound", regret_bound, RegretBoundFromJson);
  double target = 0.0;
  reader.Optional("target", target);
  reader.Optional("failures_in_a_row", budget.failures_in_a_row);
  reader.Optional("failed_share", failed_share);
  HPO_RETURN_IF_ERROR(reader.status());
  if (trials >= 0) budget.trials = trials;
  if (seconds >= 0.0) budget.wall_clock = absl::Seconds(seconds);
  if (no_progress >= 0) budget.no_progress = no_progress;
  budget.regret_bound = regret_bound;
  if (reader.Has("target")) budget.target = target;
  if (failed_share >= 0.0) budget.failed_share = failed_share;
  if (trial_seconds >= 0.0) budget.trial_wall_clock = absl::Seconds(trial_seconds);
  return budget;
}

nlohmann::json ToJson(const MemorySpec& memory) {
  nlohmann::json json = {{"policy", std::string(Name(memory.policy))},
                         {"headroom_bytes", nullptr},
                         {"allow_checkpointing", memory.allow_checkpointing},
                         {"allow_lower_precision", memory.allow_lower_precision}};
  if (memory.headroom.has_value()) json["headroom_bytes"] = memory.headroom->count;
  // Left out where it says nothing, so that studies stored before it was known read as they were.
  if (!memory.relevant.empty()) json["relevant"] = memory.relevant;
  return json;
}

absl::StatusOr<MemorySpec> MemoryFromJson(const nlohmann::json& json) {
  MemorySpec memory;
  Bytes headroom;
  JsonReader reader(json, "");
  reader.RequiredWith("policy", memory.policy, [](const nlohmann::json& member) {
    return NamedFromJson(member, ParseMemoryPolicy, "plan, strict or off");
  });
  reader.Optional("headroom_bytes", headroom);
  reader.Optional("relevant", memory.relevant);
  reader.Required("allow_checkpointing", memory.allow_checkpointing);
  reader.Required("allow_lower_precision", memory.allow_lower_precision);
  HPO_RETURN_IF_ERROR(reader.status());
  const auto stored = json.find("headroom_bytes");
  if (stored != json.end() && !stored->is_null()) memory.headroom = headroom;
  return memory;
}

nlohmann::json ToJson(const SamplerSpec& sampler) {
  return {{"type", sampler.type},
          {"seed", sampler.seed},
          {"startup_trials", sampler.startup_trials},
          {"startup", sampler.startup}};
}

absl::StatusOr<SamplerSpec> SamplerFromJson(const nlohmann::json& json) {
  SamplerSpec sampler;
  JsonReader reader(json, "");
  reader.Required("type", sampler.type);
  reader.Required("seed", sampler.seed);
  reader.Required("startup_trials", sampler.startup_trials);
  reader.Optional("startup", sampler.startup);
  HPO_RETURN_IF_ERROR(reader.status());
  return sampler;
}

}  // namespace

nlohmann::json ObjectiveToJson(const Objective& objective) {
  return {{"metric", objective.metric}, {"direction", std::string(Name(objective.direction))}};
}

absl::StatusOr<Objective> ObjectiveFromJson(const nlohmann::json& json) {
  Objective objective;
  JsonReader reader(json, "");
  reader.Required("metric", objective.metric);
  reader.RequiredWith("direction", objective.direction, [](const nlohmann::json& member) {
    return NamedFromJson(member, ParseDirection, "minimize or maximize");
  });
  HPO_RETURN_IF_ERROR(reader.status());
  return objective;
}

nlohmann::json StudyToJson(const StudySpec& spec) {
  nlohmann::json objectives = nlohmann::json::array();
  for (const Objective& objective : spec.objectives) {
    objectives.push_back(ObjectiveToJson(objective));
  }
  nlohmann::json json = SpaceToJson(spec.space);
  json["name"] = spec.name;
  json["objective"] = objectives;
  json["trainer"] = ToJson(spec.trainer);
  json["budget"] = ToJson(spec.budget);
  json["memory"] = ToJson(spec.memory);
  json["sampler"] = ToJson(spec.sampler);
  json["pruner"] = PrunerToJson(spec.pruner);
  json["heavy_models"] = spec.heavy_models;
  // Left out where it says nothing, so that studies stored before it was known read as they were.
  if (!spec.warm_start.empty()) json["warm_start"] = spec.warm_start;
  for (const MetricConstraint& constraint : spec.constraints) {
    json["metric_constraints"].push_back(ConstraintToJson(constraint));
  }
  return json;
}

absl::StatusOr<StudySpec> StudyFromJson(const nlohmann::json& json) {
  StudySpec spec;
  JsonReader reader(json, "");
  reader.Required("name", spec.name);
  reader.RequiredWith("objective", spec.objectives, [](const nlohmann::json& member) {
    return ArrayFromJson<Objective>(member, ObjectiveFromJson);
  });
  reader.RequiredWith("trainer", spec.trainer, TrainerFromJson);
  reader.RequiredWith("budget", spec.budget, BudgetFromJson);
  reader.RequiredWith("memory", spec.memory, MemoryFromJson);
  reader.RequiredWith("sampler", spec.sampler, SamplerFromJson);
  reader.RequiredWith("pruner", spec.pruner, PrunerFromJson);
  reader.Optional("heavy_models", spec.heavy_models);
  reader.Optional("warm_start", spec.warm_start);
  reader.OptionalWith("metric_constraints", spec.constraints, [](const nlohmann::json& member) {
    return ArrayFromJson<MetricConstraint>(member, ConstraintFromJson);
  });
  HPO_RETURN_IF_ERROR(reader.status());
  HPO_ASSIGN_OR_RETURN(spec.space, SpaceFromJson(json));
  return spec;
}

}  // namespace hpo
