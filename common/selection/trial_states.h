// All states of a trial, for lists of their names.
#pragma once

#include "common/study/trial.h"

namespace hpo {

inline constexpr TrialState kTrialStates[] = {TrialState::kQueued,    TrialState::kRunning,
                                              TrialState::kCompleted, TrialState::kPruned,
                                              TrialState::kFailed,    TrialState::kCancelled};

}  // namespace hpo
