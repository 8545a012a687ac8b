// Spaces whose configurations can be counted: no configuration is proposed twice while there are
// others, and a space that is used up is known to be. Pure.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/space/search_space.h"
#include "sampler/history.h"
#include "sampler/sampler.h"

namespace hpo {

// Whether trials have used up every configuration of `space`: one of them runs, waits, has
// completed or was stopped by a pruner, or two have ended in another way (an error, a lack of
// memory). False where values cannot be counted, and where a parameter that is not modelled (a
// seed) makes repetitions worth while. O(trials) once there are as many as a cheap bound of the
// configurations from below.
bool SpaceIsUsedUp(const History& history, const SearchSpace& space);

// `suggestion` where no trial has had its modelled part; else one at random that no trial has had
// and that fits the asking worker, or else that is not used up (SpaceIsUsedUp). A repetition stays
// where all that fits has been tried and a parameter is not modelled, and where a space of more
// than 4,096 configurations was drawn from in vain. seed: the study's. O(trials).
//   OutOfRange  every configuration of context.space that fits the asking worker is used up
absl::StatusOr<Suggestion> WithoutRepetition(const AskContext& context, const History& history,
                                             uint64_t seed, Suggestion suggestion);

}  // namespace hpo
