// Reads a study file (YAML, DESIGN.md "Study file"). Every error names file, line and column.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/study.h"

namespace hpo {

// Values that beat the file: flags and environment (HPO_MODEL_CHOICES, HPO_EPOCHS, HPO_TRIALS ...).
struct StudyOverrides {
  std::optional<std::vector<std::string>> model_choices;  // narrows model.name
  std::optional<int64_t> epochs;
  std::optional<int64_t> trials;
  std::optional<std::string> train;
  std::optional<std::string> validation;
  std::optional<uint64_t> seed;
};

// The overrides that the environment states.
//   InvalidArgument  names the variable, what was expected and what it holds
absl::StatusOr<StudyOverrides> OverridesFromEnvironment();

// Parses `yaml`; `origin` is the name errors start with ("studies/my.yaml:12:5: ...").
//   InvalidArgument  not YAML, an unknown or duplicate key (with a suggestion), an empty range, a
//                    default outside its range, a wrong type
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
