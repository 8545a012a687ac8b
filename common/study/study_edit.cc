// Tested by tests/common/study/study_test.cc.
#include "common/study/study_edit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/study/study_json.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

struct Difference {
  std::string field;
  std::string stored;
  std::string file;
};

std::string Shown(const nlohmann::json& json) {
  if (json.is_null()) return "nothing";
  if (json.is_number_float()) return FormatParam(json.get<double>());
  return DumpJson(json);
}

std::string Join(const std::string& path, const std::string& key) {
  return path.empty() ? key : absl::StrCat(path, ".", key);
}

std::optional<Difference> FirstDifference(const nlohmann::json& stored, const nlohmann::json& file,
                                          const std::string& path);

std::optional<Difference> DifferenceOfObjects(const nlohmann::json& stored,
                                              const nlohmann::json& file, const std::string& path) {
  const nlohmann::json absent;
  for (const auto& [key, value] : stored.items()) {
    const auto other = file.find(key);
    const auto difference =
        FirstDifference(value, other == file.end() ? absent : *other, Join(path, key));
    if (difference.has_value()) return difference;
  }
  for (const auto& [key, value] : file.items()) {
    if (stored.contains(key)) continue;
    return Difference{Join(path, key), Shown(absent), Shown(value)};
  }
  return std::nullopt;
}

std::optional<Difference> FirstDifference(const nlohmann::json& stored, const nlohmann::json& file,
                                          const std::string& path) {
  if (stored == file) return std::nullopt;
  if (stored.is_object() && file.is_object()) return DifferenceOfObjects(stored, file, path);
  const bool lists = stored.is_array() && file.is_array() && stored.size() == file.size();
  if (lists && !stored.empty() && stored[0].is_object()) {
    for (size_t i = 0; i < stored.size(); ++i) {
      const auto difference = FirstDifference(stored[i], file[i], absl::StrCat(path, "[", i, "]"));
      if (difference.has_value()) return difference;
    }
  }
  return Difference{path, Shown(stored), Shown(file)};
}

// The study as JSON in which parameters are found by name, whatever their order, and what is
// derived (model facts) is left out.
nlohmann::json Comparable(const StudySpec& spec) {
  nlohmann::json json = StudyToJson(spec);
  json.erase("model_facts");
  nlohmann::json by_name = nlohmann::json::object();
  for (nlohmann::json& parameter : json["parameters"]) {
    const std::string name = parameter["name"].get<std::string>();
    parameter.erase("name");
    by_name[name] = std::move(parameter);
  }
  json["parameters"] = std::move(by_name);
  return json;
}

bool Lists(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Adds the choices that `file` has and `stored` lacks, unless one of `stored` is gone.
void TakeAddedChoices(const CategoricalDomain& file, CategoricalDomain& stored) {
  const auto has = [](const CategoricalDomain& domain, const ParamValue& choice) {
    return Contains(domain, Coerce(domain, choice));
  };
  for (const ParamValue& choice : stored.choices) {
    if (!has(file, choice)) return;
  }
  for (const ParamValue& choice : file.choices) {
    if (!has(stored, choice)) stored.choices.push_back(choice);
  }
}

// Added choices of every categorical that only grew.
void TakeAddedChoices(const StudySpec& file, StudySpec& merged) {
  for (Parameter& parameter : merged.space.parameters) {
    auto* stored_choices = std::get_if<CategoricalDomain>(&parameter.domain);
    const Parameter* other = file.space.Find(parameter.name);
    if (stored_choices == nullptr || other == nullptr) continue;
    const auto* file_choices = std::get_if<CategoricalDomain>(&other->domain);
    if (file_choices != nullptr) TakeAddedChoices(*file_choices, *stored_choices);
  }
}

// A model that was added may be listed as heavy too; the class of a stored one never changes.
void TakeFactsOfAddedModels(const StudySpec& stored, const StudySpec& file, StudySpec& merged) {
  const Parameter* models = stored.space.Find(kModelNameParameter);
  const auto is_stored = [&](const std::string& model) {
    return models != nullptr && Contains(models->domain, model);
  };
  for (const std::string& model : file.heavy_models) {
    if (!is_stored(model) && !Lists(merged.heavy_models, model)) {
      merged.heavy_models.push_back(model);
    }
  }
  for (const auto& [model, facts] : file.space.model_facts) {
    merged.space.model_facts.emplace(model, facts);
  }
}

// `file` with its choices, budget and heavy models put as `merged` has them where both hold the
// same ones, so that a difference that is left is one that may not be.
StudySpec AlignedWith(const StudySpec& merged, StudySpec file) {
  for (Parameter& parameter : file.space.parameters) {
    auto* choices = std::get_if<CategoricalDomain>(&parameter.domain);
    const Parameter* other = merged.space.Find(parameter.name);
    if (choices == nullptr || other == nullptr) continue;
    const auto* wanted = std::get_if<CategoricalDomain>(&other->domain);
    if (wanted != nullptr && choices->choices.size() == wanted->choices.size() &&
        std::is_permutation(choices->choices.begin(), choices->choices.end(),
                            wanted->choices.begin())) {
      *choices = *wanted;
    }
  }
  if (std::is_permutation(file.heavy_models.begin(), file.heavy_models.end(),
                          merged.heavy_models.begin(), merged.heavy_models.end())) {
    file.heavy_models = merged.heavy_models;
  }
  return file;
}

// What a file may change without more: budget, program and added choices.
StudySpec Merged(const StudySpec& stored, const StudySpec& file) {
  StudySpec merged = stored;
  merged.budget = file.budget;
  // As a worker's --trainer, which nobody here sees change.
  merged.trainer.command = file.trainer.command;
  merged.trainer.workdir = file.trainer.workdir;
  TakeAddedChoices(file, merged);
  TakeFactsOfAddedModels(stored, file, merged);
  return merged;
}

//   FailedPrecondition  `file` differs from `merged`; `takes`: what would have been taken
absl::Status CheckSame(const StudySpec& merged, const StudySpec& file, absl::string_view takes) {
  const std::optional<Difference> difference =
      FirstDifference(Comparable(merged), Comparable(AlignedWith(merged, file)), "");
  if (!difference.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(difference->field, ": stored ",
                                                    difference->stored, ", file has ",
                                                    difference->file, "; ", takes));
}

}  // namespace

absl::StatusOr<StudySpec> MergeChangedStudy(const StudySpec& stored, const StudySpec& file) {
  StudySpec merged = Merged(stored, file);
  HPO_RETURN_IF_ERROR(CheckSame(
      merged, file,
      absl::StrCat(
          "a study that has begun takes only budget, trainer.command and added choices; for "
          "ranges: hpo study edit ",
          stored.name, " FILE")));
  return merged;
}

absl::StatusOr<StudySpec> EditedStudy(const StudySpec& stored, const StudySpec& file) {
  StudySpec edited = stored;
  for (Parameter& parameter : edited.space.parameters) {
    const Parameter* const wanted = file.space.Find(parameter.name);
    if (wanted == nullptr) continue;
    HPO_RETURN_IF_ERROR(CheckSameKind(parameter, wanted->domain));
    parameter.domain = wanted->domain;
    parameter.default_value = wanted->default_value;
  }
  edited.space.narrowings = file.space.narrowings;
  edited = Merged(edited, file);
  HPO_RETURN_IF_ERROR(
      CheckSame(edited, file, "an edit takes only ranges, choices, defaults and narrowings"));
  edited.budget = stored.budget;
  return edited;
}

absl::Status CheckSameKind(const Parameter& parameter, const Domain& domain) {
  if (parameter.domain.index() == domain.index()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("parameter ", parameter.name, ": expected the kind that its trials have, ",
                   FormatDomain(parameter.domain), ", got ", FormatDomain(domain)));
}

}  // namespace hpo
