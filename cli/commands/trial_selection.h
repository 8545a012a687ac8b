// `hpo trial list --where ... --sort ...`: which trials, and in which order. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/study/attributes.h"
#include "common/study/study.h"
#include "common/study/trial.h"

namespace hpo {

// Those of `trials` of which every condition ("NAME=VALUE", also !=, <, <=, > and >=) holds, by
// `sort` ("NAME", "-NAME": largest first; empty: as they are). NAME is a parameter, a metric, or
// number, state, value or time (in seconds). A choice is written as for ChoiceWritten
// (cli/render/param_words.h). Numbers are compared as numbers, all else as text; null is no more
// and no less than anything. Of a trial that has no NAME no condition holds, and it comes last.
//   InvalidArgument  no condition, a NAME that neither study nor trials have, or a VALUE that
//                    cannot be compared with NAME's: no number, no state, none of the choices
absl::StatusOr<std::vector<Trial>> SelectTrials(std::vector<Trial> trials, const StudySpec& study,
                                                const std::vector<std::string>& where,
                                                const std::string& sort);

// Whether all of `tags` are there.
bool HasTags(const Attributes& attributes, const std::vector<std::string>& tags);

}  // namespace hpo
