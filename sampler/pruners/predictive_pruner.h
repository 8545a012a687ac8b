// Stops a trial once the time that is left of it is better spent on new trials.
//
// A trial is good that ends among the best quarter. What is left of a running one, as a share of
// the longest completed trial, is worth it while
//   P(good | its value at this step) / P(a new trial is good) >= what is left,
// the first taken one standard deviation above what is expected. It is a beta distribution: the
// completed trials with the nearest values at that step, six on either side, are counted with a
// prior worth three trials, by which the normal scores of the ranks of values and ends correlate
// with 0.7. Where early values do not tell, neighbours end well and the trial goes on; where they
// do, most trials end after a few steps. As what was stopped is never seen to end well, one trial
// of six goes on whatever it reports.
//
// P(a new trial is good) is at most a quarter, and less where fewer of the last twelve that ended
// were good: nothing better is to be had for the time then, as in a space of which little is left.
// Related: Domhan, Springenberg & Hutter 2015 (predictive termination), there by extrapolation of
// each curve.
#pragma once

#include "sampler/api/pruner.h"

namespace hpo::sampler {

// Threads: as Pruner.
class PredictivePruner final : public Pruner {
 public:
  PredictivePruner(const PrunerSpec& spec, Direction direction)
      : spec_(spec), direction_(direction) {}

  // Where the trial is to be judged (PointToJudge, sampler/pruners/reports.h). Others are compared
  // by their last value up to the trial's step, where they have gone so far, or by epoch by their
  // value at the check point. A value that is NaN is worse than any other.
  std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const override;

 private:
  PrunerSpec spec_;
  Direction direction_;
};

}  // namespace hpo::sampler
