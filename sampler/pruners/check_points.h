// The epochs at which trials that report epochs are compared with each other.
//
// Trials report at different epochs: one of batch 8 that reports every step does so eight times
// where one of batch 64 does once. Compared at each report, the first is judged more often, and by
// earlier values. So all are compared at the multiples of one distance: the widest between two
// reports of a trial, and at least a hundredth of the longest trial. Everybody has one new value
// there, whatever they report between.
#pragma once

#include <cstdint>
#include <optional>

#include "sampler/api/history.h"

namespace hpo::sampler {

// Immutable. Progress of trials with `by_epoch` alone, in units of 1 / kEpoch.
class CheckPoints {
 public:
  // Of the trials of `history` that report epochs, at least one. Up to the first report counts as
  // well, but for what is before that of every trial. A completed trial that has reported only
  // once, at its end, could not be stopped, and sets no distance. O(trials).
  explicit CheckPoints(const History& history);

  // From one to the next.
  int64_t apart() const { return apart_; }

  // The first check point at or after `epoch`; 0 is one.
  int64_t AtOrAfter(int64_t epoch) const;

  // The last check point that the trial has reached.
  int64_t LastOf(const HistoryTrial& trial) const;

  // The report with which the trial reached `point`; the end of its curve where it has not. Where a
  // trial of the study was seen to repeat epochs, it is the first one beyond, as the epoch has its
  // value only then, or the completed trial's last one.
  Curve::const_iterator EndOf(const HistoryTrial& trial, int64_t point) const;

  // The value reported at `point` > 0, else the one between the reports next to it, on a line over
  // 1 / epoch: curves are steep at first and flat later. Of a completed trial that ended before,
  // the last value. nullopt where it has not gone so far, or has reported nothing before.
  std::optional<double> ValueAt(const HistoryTrial& trial, int64_t point) const;

  // The trial's values at all the check points that it has reached, and what it reported at epoch
  // 0.
  Curve CurveOf(const HistoryTrial& trial) const;

 private:
  int64_t apart_ = 1;
  int64_t tolerance_ = 0;  // epochs that differ by rounding are one
  bool repeated_ = false;  // epochs are, by a trial
};

}  // namespace hpo::sampler
