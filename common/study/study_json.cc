#include "common/study/study_json.h"

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/space/search_space_json.h"
#include "common/study/study.h"
#include "common/study/study_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr char kAuto[] = "auto";
constexpr char kConstraints[] = "metric_constraints";

}  // namespace

nlohmann::json JsonForm<RegretBound>::Write(const RegretBound& bound) {
  return bound.gap.has_value() ? nlohmann::json(*bound.gap) : nlohmann::json(kAuto);
}

absl::StatusOr<RegretBound> JsonForm<RegretBound>::Read(const nlohmann::json& json) {
  if (json.is_number()) return RegretBound{.gap = json.get<double>()};
  if (json == kAuto) return RegretBound{};
  return absl::InvalidArgumentError(
      absl::StrCat("expected a number or \"auto\", got ", DescribeJson(json)));
}

nlohmann::json StudyToJson(const StudySpec& spec) {
  nlohmann::json json = SpaceToJson(spec.space);
  AddFields(spec, json);
  // Left out where it says nothing, so that studies stored before it was known read as they were.
  if (!spec.constraints.empty()) json[kConstraints] = ToJson(spec.constraints);
  return json;
}

absl::StatusOr<StudySpec> StudyFromJson(const nlohmann::json& json) {
  StudySpec spec;
  JsonReader reader(json, "");
  ReadFields(reader, spec);
  reader.OptionalWith(kConstraints, spec.constraints, FromJson<std::vector<MetricConstraint>>);
  HPO_RETURN_IF_ERROR(reader.status());
  HPO_ASSIGN_OR_RETURN(spec.space, SpaceFromJson(json));
  return spec;
}

}  // namespace hpo
