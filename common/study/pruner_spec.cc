#include "common/study/pruner_spec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/one_of.h"
#include "common/base/status.h"
#include "common/study/study_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

// Above, the weights of hyperband's brackets would leave the whole numbers of a double.
constexpr int64_t kMaxResource = 1'000'000'000'000;
constexpr double kNoLimit = std::numeric_limits<double>::max();

struct PrunerType {
  absl::string_view name;
  std::vector<absl::string_view> keys;
};

// "none" takes what a median takes, so that a study can switch its pruner off by one word.
const std::vector<PrunerType>& PrunerTypes() {
  static const auto& types = *new std::vector<PrunerType>{
      {"predictive", {"warmup_steps", "interval_steps"}},
      {"median", {"startup_trials", "warmup_steps", "interval_steps", "min_trials"}},
      {"percentile",
       {"startup_trials", "warmup_steps", "interval_steps", "min_trials", "percentile"}},
      {"threshold", {"warmup_steps", "interval_steps", "lower", "upper"}},
      {"patient", {"wrapped", "patience", "min_delta"}},
      {"asha", {"min_resource", "reduction_factor", "min_early_stopping_rate", "bootstrap_count"}},
      {"hyperband", {"min_resource", "max_resource", "reduction_factor", "bootstrap_count"}},
      {"wilcoxon", {"p_threshold", "startup_steps"}},
      {"none", {"startup_trials", "warmup_steps", "interval_steps", "min_trials"}},
  };
  return types;
}

const PrunerType* FindPrunerType(absl::string_view name) {
  for (const PrunerType& type : PrunerTypes()) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

bool TypeTakes(absl::string_view name, absl::string_view key) {
  const PrunerType* type = FindPrunerType(name);
  // All keys of an unknown type are taken, so that its name is what is found at fault.
  return type == nullptr ||
         std::find(type->keys.begin(), type->keys.end(), key) != type->keys.end();
}

absl::Status UnexpectedMember(absl::string_view key, absl::string_view expected,
                              absl::string_view got) {
  return Unexpected(absl::StrCat("pruner.", key), expected, got);
}

absl::Status CheckType(absl::string_view key, absl::string_view got, absl::string_view excluded) {
  std::vector<absl::string_view> names;
  for (const PrunerType& type : PrunerTypes()) {
    if (type.name != excluded) names.push_back(type.name);
  }
  for (const absl::string_view name : names) {
    if (name == got) return absl::OkStatus();
  }
  return UnexpectedMember(key, OneOf(names), absl::StrCat("'", got, "'"));
}

// Inclusive range of a member; a member that is not set is within.
template <typename T>
absl::Status CheckRange(absl::string_view key, const T& member, double low, double high) {
  if constexpr (std::is_same_v<T, std::optional<int64_t>> ||
                std::is_same_v<T, std::optional<double>>) {
    return member.has_value() ? CheckRange(key, *member, low, high) : absl::OkStatus();
  } else {
    const double value = static_cast<double>(member);
    if (value >= low && value <= high) return absl::OkStatus();
    const std::string expected =
        high == kNoLimit ? absl::StrCat(">= ", low) : absl::StrCat("between ", low, " and ", high);
    return UnexpectedMember(key, expected, absl::StrCat(member));
  }
}

absl::Status CheckRanges(const PrunerSpec& spec) {
  HPO_RETURN_IF_ERROR(CheckRange("startup_trials", spec.startup_trials, 0, kNoLimit));
  HPO_RETURN_IF_ERROR(CheckRange("warmup_steps", spec.warmup_steps, 0, kNoLimit));
  HPO_RETURN_IF_ERROR(CheckRange("interval_steps", spec.interval_steps, 1, kNoLimit));
  HPO_RETURN_IF_ERROR(CheckRange("min_trials", spec.min_trials, 1, kNoLimit));
  HPO_RETURN_IF_ERROR(CheckRange("percentile", spec.percentile, 0, 100));
  HPO_RETURN_IF_ERROR(CheckRange("patience", spec.patience, 0, kMaxResource));
  HPO_RETURN_IF_ERROR(CheckRange("min_delta", spec.min_delta, 0, kNoLimit));
  HPO_RETURN_IF_ERROR(CheckRange("min_resource", spec.min_resource, 1, kMaxResource));
  HPO_RETURN_IF_ERROR(CheckRange("max_resource", spec.max_resource, 1, kMaxResource));
  HPO_RETURN_IF_ERROR(CheckRange("reduction_factor", spec.reduction_factor, 2, kMaxResource));
  HPO_RETURN_IF_ERROR(
      CheckRange("min_early_stopping_rate", spec.min_early_stopping_rate, 0, kNoLimit));
  HPO_RETURN_IF_ERROR(CheckRange("bootstrap_count", spec.bootstrap_count, 0, kNoLimit));
  HPO_RETURN_IF_ERROR(CheckRange("p_threshold", spec.p_threshold, 0, 1));
  return CheckRange("startup_steps", spec.startup_steps, 0, kNoLimit);
}

absl::Status CheckLimits(const PrunerSpec& spec) {
  if (!spec.lower.has_value() && !spec.upper.has_value()) {
    return absl::InvalidArgumentError(
        "pruner.type: threshold needs lower, upper or both, got none");
  }
  for (const auto& [key, limit] : {std::pair{"lower", spec.lower}, {"upper", spec.upper}}) {
    if (limit.has_value() && !std::isfinite(*limit)) {
      return UnexpectedMember(key, "a finite number", absl::StrCat(*limit));
    }
  }
  if (spec.lower.has_value() && spec.upper.has_value() && *spec.lower > *spec.upper) {
    return UnexpectedMember("lower", absl::StrCat("at most upper, ", *spec.upper),
                            absl::StrCat(*spec.lower));
  }
  return absl::OkStatus();
}

// Who the first trials at a rung are cannot be said while it is open where the rungs end.
absl::Status CheckResources(const PrunerSpec& spec, absl::string_view deciding_key,
                            const std::optional<int64_t>& deciding) {
  if (spec.bootstrap_count > 0 && !deciding.has_value()) {
    return UnexpectedMember("bootstrap_count",
                            absl::StrCat("0 where ", deciding_key, " is not given"),
                            absl::StrCat(spec.bootstrap_count));
  }
  const int64_t least = spec.min_resource.value_or(1);
  if (spec.max_resource.has_value() && *spec.max_resource < least) {
    return UnexpectedMember("max_resource", absl::StrCat("at least min_resource, ", least),
                            absl::StrCat(*spec.max_resource));
  }
  return absl::OkStatus();
}

}  // namespace

bool PrunerTakes(const PrunerSpec& spec, absl::string_view key) {
  return TypeTakes(spec.type, key) || (spec.type == "patient" && TypeTakes(spec.wrapped, key));
}

absl::Status ValidatePruner(const PrunerSpec& spec) {
  HPO_RETURN_IF_ERROR(CheckType("type", spec.type, ""));
  HPO_RETURN_IF_ERROR(CheckType("wrapped", spec.wrapped, "patient"));
  HPO_RETURN_IF_ERROR(CheckRanges(spec));
  const std::string& deciding = spec.type == "patient" ? spec.wrapped : spec.type;
  if (deciding == "threshold") return CheckLimits(spec);
  if (deciding == "asha") return CheckResources(spec, "min_resource", spec.min_resource);
  if (deciding == "hyperband") return CheckResources(spec, "max_resource", spec.max_resource);
  return absl::OkStatus();
}

nlohmann::json PrunerToJson(const PrunerSpec& spec) { return ToJson(spec); }

absl::StatusOr<PrunerSpec> PrunerFromJson(const nlohmann::json& json) {
  return FromJson<PrunerSpec>(json);
}

}  // namespace hpo
