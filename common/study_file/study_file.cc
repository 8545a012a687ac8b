#include "common/study_file/study_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/user_folder.h"
#include "common/study/joined_errors.h"
#include "common/study/model_catalog.h"
#include "common/study/study_fields.h"
#include "common/study_file/study_file_space.h"
#include "common/study_file/study_presets.h"
#include "common/study_file/yaml_reader.h"

namespace hpo {
namespace {

template <typename Enum>
absl::StatusOr<Enum> ReadName(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::string name, ReadString(value));
  if (const std::optional<Enum> named = ValueNamed<Enum>(name)) return *named;
  return value.Error(absl::StrCat("expected ", ExpectedNames<Enum>(), ", got '", name, "'"));
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
  if (text == kAutoWord) return std::nullopt;
  const absl::StatusOr<Bytes> bytes = ParseBytes(text);
  if (!bytes.ok()) return value.Error(absl::StrCat("auto, or ", bytes.status().message()));
  return std::optional<Bytes>(*bytes);
}

template <typename Spec>
absl::StatusOr<Spec> ReadSpec(const YamlValue& value);

// One objective, or a list of them.
absl::StatusOr<std::vector<Objective>> ReadObjectives(const YamlValue& value) {
  std::vector<YamlValue> elements = {value};
  if (value.node.IsSequence()) {
    HPO_ASSIGN_OR_RETURN(elements, ReadList(value));
  }
  std::vector<Objective> objectives;
  for (const YamlValue& element : elements) {
    HPO_ASSIGN_OR_RETURN(Objective objective, ReadSpec<Objective>(element));
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

// A list of words, or one text for /bin/sh, whose words TextOf knows
// (common/command_line/shell_word.h).
absl::StatusOr<std::vector<std::string>> ReadCommand(const YamlValue& value) {
  if (!value.node.IsScalar()) return ReadStrings(value);
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadString(value));
  if (absl::StripAsciiWhitespace(text).empty()) return value.Error("expected a command, got none");
  return std::vector<std::string>{"/bin/sh", "-c", text};
}

absl::StatusOr<TrainerSpec> ReadTrainer(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(TrainerSpec trainer, ReadSpec<TrainerSpec>(value));
  // What the program trains it knows itself.
  if (!trainer.command.empty() && !value.node["task"]) trainer.task = "custom";
  return trainer;
}

absl::StatusOr<RegretBound> ReadRegretBound(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadString(value));
  if (text == kAutoWord) return RegretBound{};
  const absl::StatusOr<double> gap = ReadDouble(value);
  if (!gap.ok()) return value.Error(absl::StrCat("expected auto or a number, got '", text, "'"));
  return RegretBound{.gap = *gap};
}

absl::StatusOr<std::optional<int64_t>> ReadIntOrAuto(const YamlValue& value) {
  const absl::StatusOr<std::string> text = ReadString(value);
  if (text.ok() && *text == kAutoWord) return std::nullopt;
  return ReadInt(value);
}

// The member of a spec, by its type.
void ReadMember(YamlMap& map, const Field& field, bool& out) { map.Read(field.key, out, ReadBool); }
void ReadMember(YamlMap& map, const Field& field, int64_t& out) {
  map.Read(field.key, out, ReadInt);
}
void ReadMember(YamlMap& map, const Field& field, uint64_t& out) {
  map.Read(field.key, out, ReadUnsigned);
}
void ReadMember(YamlMap& map, const Field& field, double& out) {
  map.Read(field.key, out, ReadDouble);
}
void ReadMember(YamlMap& map, const Field& field, std::string& out) {
  map.Read(field.key, out, ReadString);
}
void ReadMember(YamlMap& map, const Field& field, std::vector<std::string>& out) {
  map.Read(field.key, out, absl::string_view(field.key) == "command" ? ReadCommand : ReadStrings);
}
void ReadMember(YamlMap& map, const Field& field, std::optional<double>& out) {
  map.Read(field.key, out, ReadDouble);
}
void ReadMember(YamlMap& map, const Field& field, std::optional<absl::Duration>& out) {
  map.Read(field.key, out, ReadDuration);
}
void ReadMember(YamlMap& map, const Field& field, std::optional<Bytes>& out) {
  map.Read(field.key, out, ReadHeadroom);
}
void ReadMember(YamlMap& map, const Field& field, std::optional<RegretBound>& out) {
  map.Read(field.key, out, ReadRegretBound);
}
void ReadMember(YamlMap& map, const Field& field, ParamMap& out) {
  map.Read(field.key, out, ReadDefaults);
}
void ReadMember(YamlMap& map, const Field& field, std::vector<Objective>& out) {
  map.Read(field.key, out, ReadObjectives);
}
void ReadMember(YamlMap& map, const Field& field, TrainerSpec& out) {
  map.Read(field.key, out, ReadTrainer);
}
void ReadMember(YamlMap& map, const Field& field, std::optional<int64_t>& out) {
  const bool word = absl::string_view(field.if_unset) == kAutoWord;
  word ? map.Read(field.key, out, ReadIntOrAuto) : map.Read(field.key, out, ReadInt);
}
template <typename T>
void ReadMember(YamlMap& map, const Field& field, T& out) {
  if constexpr (std::is_enum_v<T>) {
    map.Read(field.key, out, ReadName<T>);
  } else {
    map.Read(field.key, out, ReadSpec<T>);
  }
}

template <typename Spec>
void ReadMembers(YamlMap& map, Spec& spec) {
  VisitFields(spec, [&](const Field& field, auto&) {
    if (field.presence == kMandatory) map.Require(field.key);
  });
  VisitFields(spec, [&](const Field& field, auto& member) { ReadMember(map, field, member); });
}

template <typename Spec>
absl::StatusOr<Spec> ReadSpec(const YamlValue& value) {
  Spec spec;
  YamlMap map(value);
  ReadMembers(map, spec);
  HPO_RETURN_IF_ERROR(map.Finish());
  return spec;
}

absl::StatusOr<MetricConstraint> ReadMetricConstraint(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(MetricConstraint constraint, ReadSpec<MetricConstraint>(value));
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
  ReadMembers(map, spec);
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

bool NamesTask(const YamlValue& root) {
  const YAML::Node trainer = root.node["trainer"];
  return trainer.IsDefined() && trainer.IsMap() && trainer["task"].IsDefined();
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
  if (overrides.task && !NamesTask(document.root())) spec.trainer.task = *overrides.task;
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
