// What the commands print of studies for people. Pure. `width`: the terminal's columns, 0 for
// unlimited; `colors`: whether it shows colours.
#pragma once

#include <string>
#include <vector>

#include "common/study/study_status.h"

namespace hpo::cli {

// One line a study.
std::string RenderStudyTable(const std::vector<StudyStatus>& studies, int width,
                             bool colors = false);

// A table of workers, and below it what they say.
std::string RenderWorkers(const std::vector<WorkerStatus>& workers, int width, bool colors = false);

// One study: progress, best, counts, memory, workers, and what it waits for.
std::string StudyText(const StudyStatus& study, int width, bool colors = false);

// The best trial's value; of several objectives the front, a trial a line.
std::string BestLines(const StudyStatus& study);

// Why failures ended the study, with what the last of them said; empty where they have not.
std::string FailureText(const StudyStatus& study);

// The space, one line a parameter, then one a narrowing.
std::string SpaceTable(const SearchSpace& space, int width, bool colors = false);

}  // namespace hpo::cli
