// The study files of studies/, compiled in. common/CMakeLists.txt writes the table.
#pragma once

#include <span>

namespace hpo {

struct StudyPreset {
  const char* name;    // file name without .yaml
  const char* origin;  // "studies/NAME.yaml"
  const char* yaml;
};

// By name.
std::span<const StudyPreset> StudyPresets();

}  // namespace hpo
