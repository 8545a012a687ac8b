// Decides whether a study's best trial is as good as any configuration may still be.
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <string>

#include "common/study/study.h"
#include "sampler/api/history.h"

namespace hpo::sampler {

// How much better than the best of its trials a study of one objective may still become, by a
// Gaussian process over them: the least upper confidence bound of a trial less the least lower one
// of any configuration, mean -+ sqrt(b) deviations, b = 2/5 ln(axes n^2 pi^2 / (6 * 0.1)). Losses
// are scaled by loss_scale.h: how bad the bad ones are must not blur the good ones. (Cut at the
// median of all, as in the source, the noise itself is cut once half of the trials lie near the
// best.) Source: Makarova et al. 2022 (AutoML-Conf, arXiv:2104.08166), and b from there.
struct RegretEstimate {
  double gap = 0.0;  // in the objective's unit
  // Deviation of one configuration's runs, in the same unit; at least a hundredth of what the
  // better trials differ by, which nobody tells apart.
  double noise = 0.0;
};

// nullopt before 20 trials have finished with a loss, and where their losses are equal. The cost is
// one fit, of at most 256 trials.
std::optional<RegretEstimate> EstimateRegret(const History& history, const StudySpec& study);

// Why a study with a budget.regret_bound should propose no more trials: the estimate is not above
// its gap; with auto, not above the noise. nullopt: it goes on, or has no such bound.
std::optional<std::string> WhyRegretBounded(const History& history, const StudySpec& study);

}  // namespace hpo::sampler
