// What a trial's end tells its study: whether it is one, and the numbers by which it is ranked.
#pragma once

#include <optional>

#include "common/study/study.h"
#include "common/study/trial.h"

namespace hpo::server {

// `outcome` as the study takes it. A completed trial has every objective, each a finite number; one
// without is Failed, and says which metrics came. A trial that ended early need not have got as
// far.
TrialOutcome CheckedOutcome(const StudySpec& spec, const TrialOutcome& outcome);

// What a completed trial reached in `objective`; nullopt where it ended otherwise, has not told it,
// or told none that is finite.
std::optional<double> ValueOf(const TrialOutcome& outcome, const Objective& objective);

// Ends `trial` with `outcome`: its state, and by what the study ranks it.
void SetOutcome(const StudySpec& spec, const TrialOutcome& outcome, Trial& trial);

}  // namespace hpo::server
