// Tested by tests/common/study_file/study_file_test.cc.
#include "common/study_file/study_overrides.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/space/search_space_validation.h"

namespace hpo {
namespace {

absl::Status BadOverride(absl::string_view what, absl::string_view expected,
                         absl::string_view got) {
  return absl::InvalidArgumentError(
      absl::StrCat("override of ", what, ": expected ", expected, ", got ", got));
}

absl::Status OverrideModels(const std::vector<std::string>& models, SearchSpace& space) {
  const auto is_models = [](const Parameter& parameter) {
    return parameter.name == kModelNameParameter;
  };
  const auto found = std::find_if(space.parameters.begin(), space.parameters.end(), is_models);
  if (found == space.parameters.end() ||
      !std::holds_alternative<CategoricalDomain>(found->domain)) {
    return BadOverride("model choices", "a study that searches model.name", "one that does not");
  }
  CategoricalDomain domain;
  domain.choices.assign(models.begin(), models.end());
  found->domain = domain;
  if (found->default_value.has_value() && !Contains(found->domain, *found->default_value)) {
    found->default_value =
        domain.choices.empty() ? std::nullopt : std::make_optional(domain.choices.front());
  }
  for (Narrowing& narrowing : space.narrowings) {
    if (narrowing.name != kModelNameParameter) continue;
    narrowing.domain = Intersect(narrowing.domain, found->domain).value_or(CategoricalDomain());
  }
  return ValidateSpace(space);
}

std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

template <typename Integer>
absl::Status ReadEnvironment(const char* name, absl::string_view expected,
                             std::optional<Integer>& out) {
  const std::optional<std::string> text = Environment(name);
  if (!text.has_value()) return absl::OkStatus();
  Integer number = 0;
  if (!absl::SimpleAtoi(*text, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected ", expected, ", got '", *text, "'"));
  }
  out = number;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StudyOverrides> OverridesFromEnvironment() {
  StudyOverrides overrides;
  if (const auto models = Environment("HPO_MODEL_CHOICES")) {
    std::vector<std::string> names;
    for (absl::string_view name : absl::StrSplit(*models, ',')) {
      name = absl::StripAsciiWhitespace(name);
      if (name.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "HPO_MODEL_CHOICES: expected model names with commas between, got '", *models, "'"));
      }
      names.emplace_back(name);
    }
    overrides.model_choices = std::move(names);
  }
  HPO_RETURN_IF_ERROR(ReadEnvironment("HPO_EPOCHS", "an integer >= 1", overrides.epochs));
  HPO_RETURN_IF_ERROR(ReadEnvironment("HPO_TRIALS", "an integer >= 0", overrides.trials));
  HPO_RETURN_IF_ERROR(ReadEnvironment("HPO_SEED", "an integer >= 0", overrides.seed));
  overrides.train = Environment("HPO_TRAIN");
  overrides.validation = Environment("HPO_VALIDATION");
  return overrides;
}

absl::Status ApplyOverrides(const StudyOverrides& overrides, StudySpec& spec) {
  if (overrides.epochs.has_value()) {
    if (*overrides.epochs < 1)
      return BadOverride("epochs", ">= 1", absl::StrCat(*overrides.epochs));
    spec.trainer.epochs = *overrides.epochs;
  }
  if (overrides.trials.has_value()) {
    if (*overrides.trials < 0)
      return BadOverride("trials", ">= 0", absl::StrCat(*overrides.trials));
    spec.budget.trials = *overrides.trials;
  }
  if (overrides.target.has_value()) spec.budget.target = overrides.target;
  if (overrides.train.has_value()) spec.trainer.train = *overrides.train;
  if (overrides.validation.has_value()) spec.trainer.validation = *overrides.validation;
  if (overrides.name.has_value()) spec.name = *overrides.name;
  if (overrides.seed.has_value()) spec.sampler.seed = *overrides.seed;
  if (!overrides.model_choices.has_value()) return absl::OkStatus();
  return OverrideModels(*overrides.model_choices, spec.space);
}

}  // namespace hpo
