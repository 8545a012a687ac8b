// `hpo trial list --where ... --sort ...`: which trials, and in which order. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/study/attributes.h"
#include "common/study/study.h"
#include "common/study/trial.h"

namespace hpo::cli {

// Those of `trials` of which every condition ("NAME=VALUE", also !=, <, <=, > and >=) holds, by
// `sort` ("NAME", "-NAME": largest first; empty: as they are). NAME is a parameter, a metric, or
// number, state, value or time (in seconds). A choice is written as for ChoiceWritten
// (common/selection/written_choice.h). Only numbers have an order: <, <=, > and >= do not hold for
// a trial whose NAME is null or a text. Of a trial that has no NAME no condition holds, and it
// comes last.
//   InvalidArgument  no condition, a NAME that neither study nor trials have, a VALUE that
//                    cannot be compared with NAME's (no number, no state, none of the choices),
//                    or an order of what has none: states, choices without a number, texts
absl::StatusOr<std::vector<Trial>> SelectTrials(std::vector<Trial> trials, const StudySpec& study,
                                                const std::vector<std::string>& where,
                                                const std::string& sort);

// Whether all of `tags` are there.
bool HasTags(const Attributes& attributes, const std::vector<std::string>& tags);

}  // namespace hpo::cli
