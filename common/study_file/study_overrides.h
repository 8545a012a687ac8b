// What flags and the environment put over a study file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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
  // Of a study whose file names none; by flag alone. ParseStudyFile applies it.
  std::optional<std::string> task;
};

// The overrides that the environment states.
//   InvalidArgument  names the variable, what was expected and what it holds
absl::StatusOr<StudyOverrides> OverridesFromEnvironment();

// Puts `overrides` over `spec`. Of models that are no longer a choice, what the study says of them
// (a default, choices of a constraint) goes too.
//   InvalidArgument  a value out of range, or model choices for a study that does not search
//                    model.name
absl::Status ApplyOverrides(const StudyOverrides& overrides, StudySpec& spec);

}  // namespace hpo
