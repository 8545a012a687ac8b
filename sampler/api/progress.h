// Which trials of a study improve it. One owner thread.
#pragma once

#include <limits>
#include <vector>

#include "sampler/api/history.h"

namespace hpo::sampler {

class Progress {
 public:
  // Whether `trial` improves on those that it was asked of before: a completed one that no feasible
  // one was at least as good as in every objective. As long as none was feasible, also one that
  // violates the constraints less than all before it. What violates them without bound, or lacks a
  // finite objective, improves nothing. O(trials that none dominates).
  bool Improves(const HistoryTrial& trial);

 private:
  std::vector<std::vector<double>> best_;  // losses of feasible trials, none dominated
  double least_violation_ = std::numeric_limits<double>::infinity();
};

}  // namespace hpo::sampler
