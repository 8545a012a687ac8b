// The study that a study of Optuna's would be here: a study file of its distributions, so that
// nobody has to write one by hand before `hpo import optuna`. Reads only; safe from any thread.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hpo {

// The text of a study file (JSON, which is YAML) for the study `from` of the file `path`, or its
// only one, called `name`; empty: as it is called there. It is as the Python package writes one, so
// that hpo.Study(name, ...) goes on with it: the task is "function", memory is not planned.
// - The objectives are Optuna's metric names, else "value", or "value_0", "value_1" and so on.
// - A parameter has the union of the ranges that its trials drew it from, and of their values: with
//   a step where one grid holds all of them. One with a single real value is a choice of it.
// - A parameter that only some trials have depends on the parameter whose values tell those trials
//   from the others, where there is one.
// Codes of OptunaSource::Open, and:
//   FailedPrecondition  no trial has ended with a parameter
//   InvalidArgument     a distribution or a direction that cannot be read, a parameter whose trials
//                       drew it from distributions of different kinds; names it
absl::StatusOr<std::string> OptunaStudyFile(const std::string& path, const std::string& from,
                                            const std::string& name);

}  // namespace hpo
