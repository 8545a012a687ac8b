// What the commands print for people. Pure: values in, lines out. `width`: the terminal's columns,
// 0 for unlimited.
#pragma once

#include <string>
#include <vector>

#include "cli/client.h"

namespace hpo {

// One line a study.
std::string StudyTable(const std::vector<StudyStatus>& studies, int width);

// One study: progress, best, counts, memory, workers, and what it waits for.
std::string StudyText(const StudyStatus& study, int width);

// The best trial's value; of several objectives the front, a trial a line.
std::string BestLines(const StudyStatus& study);

// Why failures ended the study, with what the last of them said; empty where they have not.
std::string FailureText(const StudyStatus& study);

// The space, one line a parameter, then one a narrowing.
std::string SpaceTable(const SearchSpace& space, int width);

// One line a trial: its value of each objective (the last measured where it has no result), those
// parameters that vary, and why it did not complete. Parameters that are the same in all stand
// below. Several objectives: which trials are on the front.
std::string TrialTable(const std::vector<Trial>& trials, const StudyStatus& study, int width);

// One trial: parameters, why it ended, which of the study's constraints it violates, bytes
// predicted, used and allowed, each attempt and plan, and where it ran out of memory, what and
// where.
std::string TrialText(const TrialView& view, const std::vector<MetricConstraint>& constraints,
                      int width);

// Best first, with parameters; says so where none is feasible.
std::string BestText(const std::vector<Trial>& trials, const StudyStatus& study, int width);

// The estimate by class and the verdict.
std::string MemoryText(const MemoryVerdict& verdict, int width);

// Two estimates side by side, with what the second has more or less.
std::string CompareText(const MemoryVerdict& before, const MemoryVerdict& after, int width);

}  // namespace hpo
