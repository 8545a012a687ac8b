// Decides whether a study's trials fail too often for it to go on. A pure function of the history.
#pragma once

#include <optional>
#include <string>

#include "common/study/study.h"
#include "sampler/api/history.h"

namespace hpo::sampler {

struct TooManyFailures {
  std::string why;   // "5 trials failed before one completed or was pruned (budget...)"
  TrialNumber last;  // the last of them
  bool operator==(const TooManyFailures&) const = default;
};

// nullopt: the study goes on. Failures are FAILED trials of number `from` or more that ran here
// (imported ones did not).
//   budget.failures_in_a_row = N > 0   N failures, and no trial ever has shown that the program
//                                      works: completed, or was pruned after it had measured the
//                                      objective (one that memory ended shows nothing). Trials that
//                                      run in parallel may still show it; then the study goes on.
//   budget.failed_share = S            of at least 10 trials that ended, more than S are failures
// O(trials); without a share, up to the first trial that works.
std::optional<TooManyFailures> WhyFailed(const History& history, const Budget& budget,
                                         TrialNumber from);

// Whether trials have failed and none of those that ran here has completed or was pruned.
// O(trials).
bool AllFailed(const History& history);

}  // namespace hpo::sampler
