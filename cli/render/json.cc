#include "cli/render/json.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/render/wording.h"
#include "common/base/utf8.h"
#include "common/study/status_fields.h"
#include "common/study/trial_fields.h"
#include "memory/need/estimate_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {

template <>
struct JsonForm<absl::Time> {
  static nlohmann::json Write(absl::Time time) {
    if (time == absl::InfinitePast()) return nullptr;
    return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  }
};

}  // namespace hpo

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json Shown(const T& value) {
  return ToJson<Json>(value);
}

Json WorkerJson(const WorkerStatus& worker) {
  Json json = Json::object();
  VisitFields(worker, [&](const Field& field, const auto& member) {
    AddField<WorkerStatus>(field, member, json);
    if (absl::string_view(field.key) != "alive") return;
    json["study"] = worker.trial ? Json(worker.trial->study) : Json(nullptr);
    json["trial"] = worker.trial ? Json(worker.trial->number.value) : Json(nullptr);
  });
  return json;
}

// With what the allocated bytes grew by since the record before.
Json RecordJson(const Attempt& attempt, size_t index) {
  Json json = Json::object();
  VisitFields(attempt.memory_records[index], [&](const Field& field, const auto& member) {
    const absl::string_view key = field.key;
    if (key == "sequence") return;
    AddField<MemoryRecord>(field, member, json);
    if (key == "allocated") json["change_bytes"] = Shown(AllocatedChange(attempt, index));
  });
  return json;
}

Json RecordsJson(const Attempt& attempt) {
  Json json = Json::array();
  for (size_t i = 0; i < attempt.memory_records.size(); ++i) {
    json.push_back(RecordJson(attempt, i));
  }
  return json;
}

Json AttemptJson(const Attempt& attempt) {
  Json json = Json::object();
  VisitFields(attempt, [&](const Field& field, const auto& member) {
    if (absl::string_view(field.key) == "memory_records") {
      json["stages"] = RecordsJson(attempt);
    } else {
      AddField<Attempt>(field, member, json);
    }
  });
  return json;
}

Json SpaceJson(const SearchSpace& space) {
  Json json = Json::object();
  for (const Parameter& parameter : space.parameters) {
    json[parameter.name] = DomainJson(parameter.domain);
  }
  return json;
}

Json OutcomeOrNull(const Trial& trial) {
  if (!trial.outcome) return nullptr;
  if (const auto* failed = std::get_if<Failed>(&*trial.outcome)) {
    return {{"kind", "failed"},
            {"failure_class", Shown(failed->failure_class)},
            {"message", failed->message}};
  }
  Json json = FormToJson<Json>(*trial.outcome, "kind", kOutcomeForms);
  if (std::holds_alternative<OutOfMemory>(*trial.outcome)) {
    json["oom_config"] = OomConfig(trial.params);
  }
  return json;
}

Json FrontJson(const StudyStatus& study) {
  Json front = Json::array();
  for (const FrontTrial& trial : study.front) {
    Json values = Json::object();
    for (size_t i = 0; i < trial.values.size(); ++i) {
      values[study.spec.objectives[i].metric] = trial.values[i];
    }
    front.push_back({{"trial", trial.number.value}, {"values", std::move(values)}});
  }
  return front;
}

void AddAttributes(const Attributes& attributes, Json& json) {
  const std::string note = NoteOf(attributes);
  json["note"] = note.empty() ? Json(nullptr) : Json(note);
  json["tags"] = TagsOf(attributes);
  json["attributes"] = Json(AttributesToJson(UsersOwn(attributes)));
}

Json PruneReasonJson(const Trial& trial) {
  return trial.outcome ? Shown(PruneReasonOf(*trial.outcome)) : Json(nullptr);
}

}  // namespace

Json DomainJson(const Domain& domain) {
  constexpr const char* kTypes[] = {"float", "int", "categorical"};
  Json json = {{"type", kTypes[domain.index()]}};
  std::visit([&](const auto& held) { AddFields(held, json); }, domain);
  return json;
}

Json DryRunsJson(const StudyStatus& study) {
  if (!study.dry_runs.has_value()) return nullptr;
  const DryRunCounts& counts = *study.dry_runs;
  return {{"made", counts.made},
          {"refused", counts.refused},
          {"uncertain", counts.uncertain},
          {"failed", counts.failed},
          {"took_seconds", absl::ToDoubleSeconds(counts.took)},
          {"saved_gpu_seconds", absl::ToDoubleSeconds(counts.saved)},
          {"trouble", counts.trouble}};
}

Json WorkersJson(const std::vector<WorkerStatus>& workers) {
  Json listed = Json::array();
  for (const WorkerStatus& worker : workers) listed.push_back(WorkerJson(worker));
  return Json{{"workers", std::move(listed)}};
}

Json StudyJson(const StudyStatus& study) {
  Json workers = WorkersJson(study.workers)["workers"];
  Json json = {
      {"name", study.spec.name},
      {"state", study.finished ? "FINISHED" : "ACTIVE"},
      {"objectives", Shown(study.spec.objectives)},
      {"constraints", Shown(study.spec.constraints)},
      {"budget", Shown(study.spec.budget)},
      {"order", std::string(Name(study.order))},
      {"failure", study.failure.empty() ? Json(nullptr) : Json(study.failure)},
      {"counts", Shown(study.counts)},
      {"best_trial", study.best_trial ? Json(study.best_trial->value) : Json(nullptr)},
      {"best_value", Shown(study.best_value)},
      {"best_feasible", study.best_trial ? Json(study.best_violation == 0.0) : Json(nullptr)},
      {"front", FrontJson(study)},
      {"wall_clock_used_seconds", absl::ToDoubleSeconds(study.wall_clock_used)},
      {"workers", std::move(workers)},
      {"waiting_for", study.waiting_for},
      {"blocked", study.blocked},
      {"runnable", study.runnable ? Json(*study.runnable) : Json(nullptr)},
      {"warm_start", Shown(study.priors)},
      {"dry_runs", DryRunsJson(study)},
      {"last_proposal", study.last_proposal},
      {"unreadable", study.unreadable},
      {"parameters", SpaceJson(study.spec.space)},
      {"train", study.spec.trainer.train},
      {"validation", study.spec.trainer.validation},
      {"sampler", study.spec.sampler.type},
      {"pruner", study.spec.pruner.type},
      {"seed", study.spec.sampler.seed},
      {"created", Shown(study.created)}};
  AddAttributes(study.attributes, json);
  return json;
}

Json TrialJson(const Trial& trial) {
  Json json = Json::object();
  VisitFields(trial, [&](const Field& field, const auto& member) {
    const absl::string_view key = field.key;
    if (key == "attributes") return AddAttributes(trial.attributes, json);
    AddField<Trial>(field, member, json);
    if (key == "state") json["prune_reason"] = PruneReasonJson(trial);
    if (key == "value") json["feasible"] = nullptr;
    if (key == "outcome") json["outcome"] = OutcomeOrNull(trial);
  });
  if (trial.state == TrialState::kCompleted) json["feasible"] = trial.violation == 0.0;
  const auto retry = trial.attributes.find(kRetryOfKey);
  json["retry_of"] = retry == trial.attributes.end() ? Json(nullptr) : Json::parse(retry->second);
  return json;
}

Json TrialJson(const TrialView& view) {
  Json json = TrialJson(view.trial);
  json["sampler"] = view.sampler;
  json["attempts"] = Json::array();
  for (const Attempt& attempt : view.trial.attempts) {
    json["attempts"].push_back(AttemptJson(attempt));
  }
  json["measurements"] = Shown(view.measurements);
  return json;
}

void PrintJson(const Json& json, std::ostream& out) {
  const std::string text = json.dump(/*indent=*/2, ' ', false, Json::error_handler_t::replace);
  // What steers a terminal beyond ASCII, which JSON leaves as it is, stands in texts alone.
  for (absl::string_view rest = text; !rest.empty();) {
    const Utf8Character character = FirstUtf8Character(rest);
    if (character.code >= 0x7F && SteersTerminal(character.code)) {
      out << "\\u" << absl::StrCat(absl::Hex(character.code, absl::kZeroPad4));
    } else {
      out.write(rest.data(), static_cast<std::streamsize>(character.size));
    }
    rest.remove_prefix(character.size);
  }
  out << "\n";
}

Json MemoryJson(const memory::MemoryAnswer& verdict) {
  Json json = {{"fits", verdict.fits},
               {"usable_bytes", verdict.usable.count},
               {"plan", Shown(verdict.plan)}};
  VisitFields(verdict.estimate, [&](const Field& field, const auto& member) {
    if (!absl::StartsWith(field.key, "expected_"))
      AddField<memory::MemoryEstimate>(field, member, json);
  });
  json["explanation"] = verdict.explanation;
  return json;
}

}  // namespace hpo::cli
