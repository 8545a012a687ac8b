// Trials for people, a line each. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/study/study_status.h"
#include "common/study/trial.h"

namespace hpo::cli {

// One line a trial: its value of each objective (the last measured where it has no result), those
// parameters that vary, and why it did not complete. Parameters that are the same in all stand
// below. Several objectives: which trials are on the front.
std::string TrialTable(const std::vector<Trial>& trials, const StudyStatus& study, int width,
                       bool colors = false);

}  // namespace hpo::cli
