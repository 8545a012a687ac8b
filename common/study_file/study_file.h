// Reads a study file (YAML, docs/study-file.md). Every error names file, line and column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/study/study.h"
#include "common/study_file/study_overrides.h"

namespace hpo {

// Parses `yaml`, applies `overrides` and checks the study (ValidateStudy); `origin` is the name
// errors start with ("studies/my.yaml:12:5: ..."). Models that common/study/model_catalog.h knows
// get their facts; others have none until a worker registers them.
//   InvalidArgument  not YAML, an unknown or duplicate key (with a suggestion), an empty range, a
//                    default outside its range, a wrong type, an override that does not apply
absl::StatusOr<StudySpec> ParseStudyFile(absl::string_view yaml, absl::string_view origin,
                                         const StudyOverrides& overrides);

struct StudySource {
  std::string yaml;
  std::string origin;  // what errors start with
};

// The text of the study called `name_or_path`: a path (contains '/' or ends in .yaml/.yml), else
// the user's config directory ($XDG_CONFIG_HOME/hpo/studies), else the presets compiled in, else a
// file of that very name.
//   NotFound  says where it looked and lists the names there are
absl::StatusOr<StudySource> FindStudySource(absl::string_view name_or_path);

// Parses what FindStudySource finds.
//   InvalidArgument  see ParseStudyFile
absl::StatusOr<StudySpec> LoadStudy(absl::string_view name_or_path,
                                    const StudyOverrides& overrides);

// Names of the embedded presets.
std::vector<std::string> PresetNames();

}  // namespace hpo
