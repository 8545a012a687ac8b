// Reads a study file (YAML, docs/study-file.md). Every error names file, line and column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/study/study.h"

namespace hpo {

// Values that beat the file: flags and environment (HPO_MODEL_CHOICES, comma separated, HPO_EPOCHS,
// HPO_TRIALS, HPO_TRAIN, HPO_VALIDATION, HPO_SEED).
struct StudyOverrides {
  // The choices of model.name, in this order. One that the file does not have is added, since it is
  // the user's explicit wish to bring a model of their own.
  std::optional<std::vector<std::string>> model_choices;
  std::optional<int64_t> epochs;
  std::optional<int64_t> trials;
  std::optional<double> target;  // of the objective; by flag alone
  std::optional<std::string> train;
  std::optional<std::string> validation;
  std::optional<uint64_t> seed;
  std::optional<std::string> name;  // of the study; by flag alone
};

// The overrides that the environment states.
//   InvalidArgument  names the variable, what was expected and what it holds
absl::StatusOr<StudyOverrides> OverridesFromEnvironment();

// Puts `overrides` over `spec`. Of models that are no longer a choice, what the study says of them
// (a default, choices of a constraint) goes too.
//   InvalidArgument  a value out of range, or model choices for a study that does not search
//                    model.name
absl::Status ApplyOverrides(const StudyOverrides& overrides, StudySpec& spec);

// Parses `yaml`, applies `overrides` and checks the study (ValidateStudy); `origin` is the name
// errors start with ("studies/my.yaml:12:5: ..."). Models that common/study/model_catalog.h knows
// get their facts; others have none until a worker registers them.
//   InvalidArgument  not YAML, an unknown or duplicate key (with a suggestion), an empty range, a
//                    default outside its range, a wrong type, an override that does not apply
absl::StatusOr<StudySpec> ParseStudyFile(absl::string_view yaml, absl::string_view origin,
                                         const StudyOverrides& overrides);

// Finds the study called `name_or_path`: a path (contains '/' or ends in .yaml/.yml), else the
// user's config directory ($XDG_CONFIG_HOME/hpo/studies), else the presets compiled in.
//   NotFound         says where it looked and lists the names there are
//   InvalidArgument  see ParseStudyFile
absl::StatusOr<StudySpec> LoadStudy(absl::string_view name_or_path,
                                    const StudyOverrides& overrides);

// Names of the embedded presets.
std::vector<std::string> PresetNames();

}  // namespace hpo
