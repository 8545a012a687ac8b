// Any bytes as a study file: refused at a place in the file, or a study that survives storage.
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/study/study_edit.h"
#include "common/study/study_json.h"
#include "common/study_file/study_file.h"
#include "nlohmann/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view yaml(reinterpret_cast<const char*>(data), size);
  const auto spec = hpo::ParseStudyFile(yaml, "my.yaml", {});
  if (!spec.ok()) {
    HPO_CHECK(absl::IsInvalidArgument(spec.status()));
    HPO_CHECK(absl::StartsWith(spec.status().message(), "my.yaml:"));
    return 0;
  }
  HPO_CHECK(hpo::ValidateStudy(*spec).ok());
  const auto json = hpo::ParseJson(hpo::DumpJson(hpo::StudyToJson(*spec)));
  HPO_CHECK(json.ok());
  const auto stored = hpo::StudyFromJson(*json);
  HPO_CHECK(stored.ok());
  const auto merged = hpo::MergeChangedStudy(*stored, *spec);
  HPO_CHECK(merged.ok());
  return 0;
}
