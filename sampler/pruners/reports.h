// What pruners ask of a trial's reports, which are its intermediate values by progress: by epoch
// where it reports epochs, by step elsewhere. Trials of the two kinds are not compared, and those
// that report epochs are compared at check points (sampler/pruners/check_points.h).
#pragma once

#include <optional>
#include <string>

#include "common/study/study.h"
#include "sampler/api/history.h"

namespace hpo::sampler {

// The trial, if it has reported; nullptr if not, or if the history does not know it.
const HistoryTrial* FindReporting(const History& history, TrialNumber trial);

// Whether the trial's last report, at step t, is the first one since the last check point: t is at
// least warmup_steps and no other report lies in
// [warmup_steps + floor((t - warmup_steps) / interval_steps) * interval_steps, t).
bool IsCheckPoint(const HistoryTrial& trial, const PrunerSpec& spec);

// Where the trial is to be judged now: by step at its last report, if IsCheckPoint; by epoch at the
// last check point that it has reached of those at warmup_steps + k * interval_steps epochs,
// rounded up to check points, where it did so with its newest reports and has a value there.
// nullopt: nowhere.
std::optional<int64_t> PointToJudge(const History& history, const HistoryTrial& trial,
                                    const PrunerSpec& spec);

// The trial's values that are compared: its reports, or by epoch those at check points, which
// `at_check_points` then holds.
const Curve& ComparedCurve(const History& history, const HistoryTrial& trial,
                           std::optional<Curve>& at_check_points);

// Progress after `count` steps, or epochs of a trial that reports epochs.
int64_t ProgressAfter(const HistoryTrial& trial, int64_t count);

// "step 40", "epoch 2.5".
std::string NameOf(const HistoryTrial& trial, int64_t progress);

// Largest last progress of the completed trials that have reported as `like` does; nullopt without
// one.
std::optional<int64_t> LongestCompleted(const History& history, const HistoryTrial& like);

// Smallest of the values whose steps are in [begin, end), NaN ignored; NaN where all are.
double BestValue(std::map<int64_t, double>::const_iterator begin,
                 std::map<int64_t, double>::const_iterator end);

// A value in "smaller is better" sign as its metric has it, and the other way round.
double InUnitOf(Direction direction, double value);

}  // namespace hpo::sampler
