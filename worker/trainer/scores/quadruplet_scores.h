// How well whole quadruplets are found. Free of torch.
#pragma once

#include <cstdint>
#include <span>

#include "common/study/trial.h"
#include "worker/text/data/aspect_file.h"

namespace hpo::trainer {

// Counts text by text. Not thread-safe.
//
// A quadruplet is found where one with its QuadrupletKey (worker/text/data/quadruplets.h) is said.
// One that the data have twice counts once, with its first numbers.
//
// Source of "quadruplet_cf1": the continuous F1 of SemEval-2026 Task 3, subtask 3
// (metrics_subtask_1_2_3.py of github.com/DimABSA/DimABSA2026): one that is found counts
// 1 - d / sqrt(128) instead of 1, 0 at least, d being the distance between the two points of
// valence and arousal and sqrt(128) the greatest between points of 1 to 9.
class QuadrupletScores {
 public:
  // `said` has no two with the same key.
  void AddText(std::span<const text::Aspect> actual, std::span<const text::Aspect> said);

  // "quadruplet_f1" and "quadruplet_cf1" over all texts: twice what is found / (all said + all
  // there are); 0 where there are none and nothing is said.
  void Summarize(Metrics& metrics) const;

 private:
  int64_t found_ = 0;
  double found_continuous_ = 0.0;
  int64_t said_ = 0;
  int64_t actual_ = 0;
};

}  // namespace hpo::trainer
