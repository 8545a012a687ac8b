#include "common/study/trial.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
TrialState StateOf(const TrialOutcome& outcome) {
  if (std::holds_alternative<Completed>(outcome)) return TrialState::kCompleted;
  if (std::holds_alternative<Failed>(outcome)) return TrialState::kFailed;
  if (std::holds_alternative<Cancelled>(outcome)) return TrialState::kCancelled;
  return TrialState::kPruned;
}

std::optional<PruneReason> PruneReasonOf(const TrialOutcome& outcome) {
  if (std::holds_alternative<StoppedByPruner>(outcome)) return PruneReason::kPruner;
  const OutOfMemory* oom = std::get_if<OutOfMemory>(&outcome);
  if (oom == nullptr) return std::nullopt;
  if (oom->kind == OomKind::kHost) return PruneReason::kHostOutOfMemory;
  return oom->predicted ? PruneReason::kPredictedOutOfMemory : PruneReason::kOutOfMemory;
}

absl::string_view Name(TrialState state) { return NameIn(state); }
absl::string_view Name(PruneReason reason) { return NameIn(reason); }
absl::string_view Name(Precision precision) { return NameIn(precision); }
absl::string_view Name(OomKind kind) { return NameIn(kind); }
absl::string_view Name(FailureClass failure_class) { return NameIn(failure_class); }
absl::string_view Name(ReleaseReason reason) { return NameIn(reason); }
absl::string_view Name(AttemptState state) { return NameIn(state); }

template <typename Enum>
std::optional<Enum> ParseName(absl::string_view name) {
  return ValueNamed<Enum>(name);
}

template std::optional<TrialState> ParseName(absl::string_view name);
template std::optional<PruneReason> ParseName(absl::string_view name);
template std::optional<Precision> ParseName(absl::string_view name);
template std::optional<OomKind> ParseName(absl::string_view name);
template std::optional<FailureClass> ParseName(absl::string_view name);
template std::optional<ReleaseReason> ParseName(absl::string_view name);
template std::optional<AttemptState> ParseName(absl::string_view name);

nlohmann::json MetricsToJson(const Metrics& metrics) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : metrics) {
    if (std::isinf(value)) {
      json[name] = value > 0.0 ? "Infinity" : "-Infinity";
    } else {
      json[name] = ToJson(value);
    }
  }
  return json;
}

absl::StatusOr<Metrics> MetricsFromJson(const nlohmann::json& json) {
  Metrics metrics;
  const nlohmann::json holder = {{"metrics", json}};
  JsonReader reader(holder, "");
  reader.Required("metrics", metrics);
  HPO_RETURN_IF_ERROR(reader.status());
  return metrics;
}

nlohmann::json OutcomeToJson(const TrialOutcome& outcome) {
  return FormToJson(outcome, "kind", kOutcomeForms);
}

absl::StatusOr<TrialOutcome> OutcomeFromJson(const nlohmann::json& json) {
  return FormFromJson(json, "kind", kOutcomeForms);
}

nlohmann::json PlanToJson(const MemoryPlan& plan) { return ToJson(plan); }

absl::StatusOr<MemoryPlan> PlanFromJson(const nlohmann::json& json) {
  MemoryPlan plan;
  JsonReader reader(json, "");
  ReadFields(reader, plan);
  if (plan.effective_batch < 1) {
    reader.Fail("effective_batch", absl::StrCat("expected >= 1, got ", plan.effective_batch));
  }
  if (plan.micro_batch < 1) {
    reader.Fail("micro_batch", absl::StrCat("expected >= 1, got ", plan.micro_batch));
  }
  HPO_RETURN_IF_ERROR(reader.status());
  return plan;
}

nlohmann::json OomConfig(const ParamMap& params) {
  constexpr std::pair<const char*, const char*> kKeys[] = {
      {"model", "model.name"},
      {"batch_size", kBatchSizeParameter},
      {"grad_accum", kGradAccumParameter},
      {"max_length", kMaxLengthParameter},
  };
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, parameter] : kKeys) {
    const auto found = params.find(parameter);
    if (found != params.end()) json[key] = ParamToJson(found->second);
  }
  const std::optional<int64_t> batch_size = FindInt(params, kBatchSizeParameter);
  int64_t effective = 0;
  if (batch_size.has_value() &&
      !__builtin_mul_overflow(*batch_size, FindInt(params, kGradAccumParameter).value_or(1),
                              &effective)) {
    json["effective_batch_size"] = effective;
  }
  return json;
}

}  // namespace hpo
