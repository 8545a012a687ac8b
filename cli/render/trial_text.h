// What the commands print of single trials for people. Pure. `width`: the terminal's columns, 0 for
// unlimited; `colors`: whether it shows colours.
#pragma once

#include <string>
#include <vector>

#include "common/study/study_status.h"
#include "common/study/trial_view.h"

namespace hpo::cli {

// One trial: parameters, why it ended, which of the study's constraints it violates, bytes
// predicted, used and allowed, each attempt and plan, and where it ran out of memory, what and
// where.
std::string TrialText(const TrialView& view, const std::vector<MetricConstraint>& constraints,
                      int width, bool colors = false);

// Best first, with parameters; says so where none is feasible.
std::string BestText(const std::vector<Trial>& trials, const StudyStatus& study, int width,
                     bool colors = false);

}  // namespace hpo::cli
