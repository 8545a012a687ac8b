// A study out of a file of Optuna's (SQLite, schema 12), as trials that a study of ours can take:
// the reverse of optuna_file.h. Reads only; safe from any thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/study/imported_trial.h"
#include "common/study/study.h"

namespace hpo {

struct OptunaStudy {
  std::string name;
  std::vector<ImportedTrial> trials;  // by number
  int64_t num_open = 0;               // WAITING or RUNNING: left out
  int64_t num_incomplete = 0;         // FAIL before all parameters were drawn: left out
  int64_t num_lacking = 0;            // others without a parameter of the study: left out
  int64_t num_not_finite = 0;         // COMPLETE with an infinite value: kept as it is
  Attributes attributes;              // of the study
  int64_t num_unfit = 0;              // attributes that are none of ours: left out
  std::set<std::string> as_text;      // parameters with choices that became text (IsTextChoice)
};

// The study `name` of the file, or its only one, for `study`. A trial's origin is "optuna:NAME#12".
// Parameters have the values that Optuna shows; whether `study` allows them is the server's to say.
// COMPLETE is Completed, each value under the name of the objective in its place, also an infinite
// one, which samplers take for the worst; PRUNED is
// StoppedByPruner at its last step; FAIL is Failed. Where a trial has the attribute "hpo:outcome"
// of a trial of ours, and its state is that outcome's, it is that outcome.
// Its user attributes are ours, note and tags of an exported study among them, but those that are
// no JSON (a NaN) or beyond common/base/limits.h. Its system attributes and constraints have no
// place in a study of ours.
//   NotFound            no such file or study; several and no name: lists them
//   FailedPrecondition  another database, another schema, or one that cannot be read
//   InvalidArgument     directions or metrics that are not the study's, a value or a parameter that
//                       is damaged; names the trial
absl::StatusOr<OptunaStudy> ReadOptunaStudy(const std::string& path, const std::string& name,
                                            const StudySpec& study);

}  // namespace hpo
