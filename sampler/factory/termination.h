// Decides whether a study has stopped to make progress. A pure function of the history.
#pragma once

#include <optional>
#include <string>

#include "common/study/study.h"
#include "sampler/api/history.h"

namespace hpo::sampler {

// Why a study should propose no more trials: "no progress in the 30 trials since trial 12", or that
// trials have had every configuration of its space (finite_space.h) or grid. nullopt: it goes on.
//
// With budget.no_progress = N: when N trials of a higher number than the last one that improved the
// study (progress.h) have ended, completed or pruned (failures and cancellations prove nothing;
// imported trials outside the budget may improve the study, but are none of the N). Counts trials
// by their numbers, so that a restart decides the same; a running one may still improve the study,
// which then goes on. Until a trial has improved the study it goes on. O(trials); with several
// objectives O(trials * best trials).
// Source: the stagnation of the best value in optuna.terminator, there with completed trials only.
std::optional<std::string> WhyTerminate(const History& history, const StudySpec& study);

// Which trial has reached budget.target and how to go on: the first feasible one by its number that
// completed with that value of the objective or a better one. nullopt: none has, or there is none.
// O(trials).
std::optional<std::string> WhyTargetReached(const History& history, const StudySpec& study);

}  // namespace hpo::sampler
