// The progress of a study in one line. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/study/study_status.h"
#include "common/study/trial.h"

namespace hpo::cli {

// Steps of the trials that run now, by number; 0 where nothing has been measured yet.
using RunningSteps = std::map<TrialNumber, int64_t>;

// How long the rest of the budget takes at the pace so far, or until the wall clock's budget is
// used up, whichever is sooner; nullopt where neither is known.
std::optional<absl::Duration> TimeLeft(const StudyStatus& study);

// "criteria 7/12 | best 0.713 (#4) | 1 running (#8 step 120) | OOM 1 met, 0 predicted | time left
// 3m10s"; "finished" instead of the last once the study is.
std::string ProgressLine(const StudyStatus& study, const RunningSteps& running);

// What happens while there are no news: "running: trial 3 for 2m10s (step 120); 2 of 6 trials
// ended", "waits: no configuration found that fits ..."; what workers say of their machines. Empty:
// nothing is known. `running`: the study's running trials.
std::string AwaitedLine(const StudyStatus& study, const std::vector<Trial>& running,
                        absl::Time now);

// What a finished trial is worth a line of a log: "trial 7 COMPLETED: macro_f1 0.7131 in 1m02s;
// best is #4 with 0.7204". `colors`: its state has its colour.
std::string FinishedLine(const Trial& trial, const StudyStatus& study, bool colors = false);

}  // namespace hpo::cli
