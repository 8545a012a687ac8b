#include "common/study/study_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/read_file.h"
#include "common/base/status.h"
#include "common/base/user_folder.h"
#include "common/study/joined_errors.h"
#include "common/study/model_catalog.h"
#include "common/study/study_file_space.h"
#include "common/study/study_presets.h"
#include "common/study/yaml_reader.h"

namespace hpo {
namespace {

absl::StatusOr<Direction> ReadDirection(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::string name, ReadString(value));
  if (const std::optional<Direction> direction = ParseDirection(name)) return *direction;
  return value.Error(absl::StrCat("expected minimize or maximize, got '", name, "'"));
}

absl::StatusOr<MemoryPolicy> ReadPolicy(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::string name, ReadString(value));
  if (const std::optional<MemoryPolicy> policy = ParseMemoryPolicy(name)) return *policy;
  return value.Error(absl::StrCat("expected plan, strict or off, got '", name, "'"));
}

absl::StatusOr<absl::Duration> ReadDuration(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadString(value));
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration >= absl::ZeroDuration() &&
      duration != absl::InfiniteDuration()) {
    return duration;
  }
  return value.Error(absl::StrCat("expected a duration such as 8h, 30m or 90s, got '", text, "'"));
}

absl::StatusOr<std::optional<Bytes>> ReadHeadroom(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadString(value));
  if (text == "auto") return std::nullopt;
  const absl::StatusOr<Bytes> bytes = ParseBytes(text);
  if (!bytes.ok()) return value.Error(absl::StrCat("auto, or ", bytes.status().message()));
  return std::optional<Bytes>(*bytes);
}

absl::StatusOr<Objective> ReadObjective(const YamlValue& value) {
  Objective objective;
  YamlMap map(value);
  map.Require("metric");
  map.Require("direction");
  map.Read("metric", objective.metric, ReadString);
  map.Read("direction", objective.direction, ReadDirection);
  HPO_RETURN_IF_ERROR(map.Finish());
  return objective;
}

// One objective, or a list of them.
absl::StatusOr<std::vector<Objective>> ReadObjectives(const YamlValue& value) {
  std::vector<YamlValue> elements = {value};
  if (value.node.IsSequence()) {
    HPO_ASSIGN_OR_RETURN(elements, ReadList(value));
  }
  std::vector<Objective> objectives;
  for (const YamlValue& element : elements) {
    HPO_ASSIGN_OR_RETURN(Objective objective, ReadObjective(element));
    objectives.push_back(std::move(objective));
  }
  return objectives;
}

absl::StatusOr<ParamMap> ReadDefaults(const YamlValue& value) {
  ParamMap defaults;
  YamlMap map(value);
  for (const auto& [name, entry] : map.TakeAll()) {
    HPO_ASSIGN_OR_RETURN(ParamValue param, ReadParam(entry));
    defaults.emplace(name, std::move(param));
  }
  HPO_RETURN_IF_ERROR(map.Finish());
  return defaults;
}

absl::StatusOr<TrainerSpec> ReadTrainer(const YamlValue& value) {
  TrainerSpec trainer;
  YamlMap map(value);
  map.Read("command", trainer.command, ReadStrings);
  map.Read("workdir", trainer.workdir, ReadString);
  // What the program trains it knows itself.
  if (!trainer.command.empty()) trainer.task = "custom";
  map.Read("task", trainer.task, ReadString);
  map.Read("train", trainer.train, ReadString);
  map.Read("validation", trainer.validation, ReadString);
  map.Read("epochs", trainer.epochs, ReadInt);
  map.Read("init", trainer.model_init, ReadString);
  map.Read("measure_every_steps", trainer.measure_every_steps, ReadInt);
  map.Read("labels", trainer.labels, ReadStrings);
  map.Read("defaults", trainer.defaults, ReadDefaults);
  HPO_RETURN_IF_ERROR(map.Finish());
  return trainer;
}

absl::StatusOr<RegretBound> ReadRegretBound(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadString(value));
  if (text == "auto") return RegretBound{};
  const absl::StatusOr<double> gap = ReadDouble(value);
  if (!gap.ok()) return value.Error(absl::StrCat("expected auto or a number, got '", text, "'"));
  return RegretBound{.gap = *gap};
}

absl::StatusOr<Budget> ReadBudget(const YamlValue& value) {
  Budget budget;
  YamlMap map(value);
  map.Read("trials", budget.trials, ReadInt);
  map.Read("wall_clock", budget.wall_clock, ReadDuration);
  map.Read("trial_wall_clock", budget.trial_wall_clock, ReadDuration);
  map.Read("no_progress", budget.no_progress, ReadInt);
  map.Read("regret_bound", budget.regret_bound, ReadRegretBound);
  map.Read("target", budget.target, ReadDouble);
  map.Read("failures_in_a_row", budget.failures_in_a_row, ReadInt);
  map.Read("failed_share", budget.failed_share, ReadDouble);
  HPO_RETURN_IF_ERROR(map.Finish());
  return budget;
}

absl::StatusOr<MemorySpec> ReadMemory(const YamlValue& value) {
  MemorySpec memory;
  YamlMap map(value);
  map.Read("policy", memory.policy, ReadPolicy);
  map.Read("headroom", memory.headroom, ReadHeadroom);
  map.Read("allow_checkpointing", memory.allow_checkpointing, ReadBool);
  map.Read("allow_lower_precision", memory.allow_lower_precision, ReadBool);
  map.Read("relevant", memory.relevant, ReadStrings);
  HPO_RETURN_IF_ERROR(map.Finish());
  return memory;
}

absl::StatusOr<SamplerSpec> ReadSampler(const YamlValue& value) {
  SamplerSpec sampler;
  YamlMap map(value);
  map.Read("type", sampler.type, ReadString);
  map.Read("seed", sampler.seed, ReadUnsigned);
  map.Read("startup_trials", sampler.startup_trials, ReadInt);
  map.Read("startup", sampler.startup, ReadString);
  HPO_RETURN_IF_ERROR(map.Finish());
  return sampler;
}

absl::StatusOr<std::optional<int64_t>> ReadIntOrAuto(const YamlValue& value) {
  const absl::StatusOr<std::string> text = ReadString(value);
  if (text.ok() && *text == "auto") return std::nullopt;
  return ReadInt(value);
}

void ReadMember(YamlMap& map, const char* key, int64_t& out) { map.Read(key, out, ReadInt); }
void ReadMember(YamlMap& map, const char* key, double& out) { map.Read(key, out, ReadDouble); }
void ReadMember(YamlMap& map, const char* key, std::string& out) { map.Read(key, out, ReadString); }
void ReadMember(YamlMap& map, const char* key, std::optional<int64_t>& out) {
  map.Read(key, out, ReadIntOrAuto);
}
void ReadMember(YamlMap& map, const char* key, std::optional<double>& out) {
  map.Read(key, out, ReadDouble);
}

absl::StatusOr<PrunerSpec> ReadPruner(const YamlValue& value) {
  PrunerSpec pruner;
  YamlMap map(value);
  map.Read("type", pruner.type, ReadString);
  VisitPrunerMembers(pruner, [&](const char* key, auto& member) {
    if (PrunerTakes(pruner, key)) ReadMember(map, key, member);
  });
  HPO_RETURN_IF_ERROR(map.Finish());
  return pruner;
}

absl::StatusOr<MetricConstraint> ReadMetricConstraint(const YamlValue& value) {
  MetricConstraint constraint;
  YamlMap map(value);
  map.Require("metric");
  map.Read("metric", constraint.metric, ReadString);
  map.Read("at_least", constraint.at_least, ReadDouble);
  map.Read("at_most", constraint.at_most, ReadDouble);
  HPO_RETURN_IF_ERROR(map.Finish());
  const absl::Status valid = ValidateConstraint(constraint);
  if (!valid.ok()) return value.Error(valid.message());
  return constraint;
}

bool IsMetricConstraint(const YamlValue& value) {
  if (!value.node.IsMap()) return false;
  const YAML::Node& node = value.node;
  return node["metric"] || node["at_least"] || node["at_most"];
}

// Limits on metrics go into `metrics`; the others, which narrow the space, are returned unread.
absl::StatusOr<std::vector<YamlValue>> ReadMetricConstraints(
    const YamlValue& value, std::vector<MetricConstraint>& metrics) {
  HPO_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, ReadList(value));
  std::vector<YamlValue> narrowings;
  for (const YamlValue& element : elements) {
    if (IsMetricConstraint(element)) {
      HPO_ASSIGN_OR_RETURN(metrics.emplace_back(), ReadMetricConstraint(element));
    } else {
      narrowings.push_back(element);
    }
  }
  return narrowings;
}

absl::StatusOr<StudySpec> ReadStudy(const YamlValue& root) {
  StudySpec spec;
  YamlMap map(root);
  map.Require("name");
  map.Require("objective");
  map.Read("name", spec.name, ReadString);
  map.Read("objective", spec.objectives, ReadObjectives);
  map.Read("trainer", spec.trainer, ReadTrainer);
  map.Read("budget", spec.budget, ReadBudget);
  map.Read("memory", spec.memory, ReadMemory);
  map.Read("sampler", spec.sampler, ReadSampler);
  map.Read("pruner", spec.pruner, ReadPruner);
  map.Read("heavy_models", spec.heavy_models, ReadStrings);
  map.Read("warm_start", spec.warm_start, ReadStrings);
  const std::optional<YamlValue> parameters = map.Require("parameters");
  const std::optional<YamlValue> constraints = map.Take("constraints");
  absl::Status errors = map.Finish();
  absl::StatusOr<std::vector<YamlValue>> narrowings = std::vector<YamlValue>();
  if (constraints.has_value()) narrowings = ReadMetricConstraints(*constraints, spec.constraints);
  errors = Both(errors, narrowings.status());
  if (parameters.has_value()) {
    absl::StatusOr<SearchSpace> space =
        ReadSpace(*parameters, narrowings.ok() ? *narrowings : std::vector<YamlValue>());
    errors = Both(errors, space.status());
    if (space.ok()) spec.space = *std::move(space);
  }
  HPO_RETURN_IF_ERROR(errors);
  return spec;
}

void AddKnownFacts(StudySpec& spec) {
  const Parameter* models = spec.space.Find(kModelNameParameter);
  if (models == nullptr) return;
  const auto* domain = std::get_if<CategoricalDomain>(&models->domain);
  if (domain == nullptr) return;
  for (const ParamValue& choice : domain->choices) {
    const std::string* model = std::get_if<std::string>(&choice);
    if (model == nullptr) continue;
    const std::string full = FullModelName(*model);
    const bool listed =
        std::any_of(spec.heavy_models.begin(), spec.heavy_models.end(),
                    [&full](const std::string& heavy) { return FullModelName(heavy) == full; });
    if (const std::optional<ModelShape> shape = KnownModelShape(full)) {
      AddModelFacts(spec.space, *model, *shape, listed);
    } else {
      AddModelFacts(spec.space, *model, listed);
    }
  }
}

// Folder of the user's own studies; empty where the environment names no home.
std::filesystem::path UserStudies() {
  const std::filesystem::path config = UserFolder("XDG_CONFIG_HOME", ".config");
  return config.empty() ? config : config / "hpo" / "studies";
}

bool IsStudyFile(const std::filesystem::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

absl::Status NoSuchStudy(absl::string_view name) {
  const std::filesystem::path folder = UserStudies();
  std::vector<std::string> known = PresetNames();
  std::error_code ignored;  // a folder that cannot be listed offers no names
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (IsStudyFile(entry.path())) known.push_back(entry.path().stem().string());
  }
  return absl::NotFoundError(absl::StrCat("study '", name, "': expected one of ",
                                          absl::StrJoin(known, ", "), ", or a file (looked in ",
                                          folder.string(), " and among the built-in ones)"));
}

}  // namespace

absl::StatusOr<StudySpec> ParseStudyFile(absl::string_view yaml, absl::string_view origin,
                                         const StudyOverrides& overrides) {
  HPO_ASSIGN_OR_RETURN(YamlDocument document, YamlDocument::Parse(yaml, origin));
  HPO_ASSIGN_OR_RETURN(StudySpec spec, ReadStudy(document.root()));
  const absl::Status applied = ApplyOverrides(overrides, spec);
  if (!applied.ok()) return Annotate(applied, origin);
  HPO_RETURN_IF_ERROR(document.AtPath(ValidateStudy(spec)));
  AddKnownFacts(spec);
  return spec;
}

absl::StatusOr<StudySource> FindStudySource(absl::string_view name_or_path) {
  const std::string name(name_or_path);
  if (absl::StrContains(name, '/') || IsStudyFile(name)) {
    HPO_ASSIGN_OR_RETURN(std::string yaml, ReadFile(name));
    return StudySource{std::move(yaml), name};
  }
  for (const char* extension : {".yaml", ".yml"}) {
    const std::string path = (UserStudies() / (name + extension)).string();
    absl::StatusOr<std::string> yaml = ReadFile(path);
    if (yaml.ok()) return StudySource{*std::move(yaml), path};
    if (!absl::IsNotFound(yaml.status())) return yaml.status();
  }
  for (const StudyPreset& preset : StudyPresets()) {
    if (name == preset.name) return StudySource{preset.yaml, preset.origin};
  }
  absl::StatusOr<std::string> yaml = ReadFile(name);
  if (yaml.ok()) return StudySource{*std::move(yaml), name};
  return absl::IsNotFound(yaml.status()) ? NoSuchStudy(name) : yaml.status();
}

absl::StatusOr<StudySpec> LoadStudy(absl::string_view name_or_path,
                                    const StudyOverrides& overrides) {
  HPO_ASSIGN_OR_RETURN(const StudySource text, FindStudySource(name_or_path));
  return ParseStudyFile(text.yaml, text.origin, overrides);
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const StudyPreset& preset : StudyPresets()) names.push_back(preset.name);
  return names;
}

}  // namespace hpo
