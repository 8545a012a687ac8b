// What TPE learns from a trial; and the ways in which a trial is lost, such as an out-of-memory
// error or a failure. Each way has the densities of the trials that were lost so and of those that
// were not. Threads: as DensityRatio.
#pragma once

#include <cstdint>

#include "sampler/api/history.h"
#include "sampler/tpe/density_ratio.h"
#include "sampler/tpe/model_space.h"

namespace hpo::sampler {

enum class TrialLesson {
  kNothing,
  kOverMemory,  // could not run within the capacity
  kFailed,
  kViolating,  // a constraint
  kStopped,    // by a pruner
  kFeasible,
  kRunning,
};

TrialLesson LessonOf(const HistoryTrial& trial, Bytes capacity, MemoryPolicy policy);
bool TeachesQuality(TrialLesson lesson);

struct TrialLoss {
  const char* name;
  TrialLesson lesson;  // of a trial that is lost so
  DensityRatio ratio;
  double exponent;
  int64_t num_lost = 0;
  bool modelled = false;  // from the first lost trial on

  // Replaces what was learnt from `trial`, a point of `space`, which was `before`, by `now`.
  void Learn(const ModelSpace& space, const HistoryTrial& trial, TrialLesson before,
             TrialLesson now);
  // Whether the acquisition function takes it into account.
  bool Counts() const;

 private:
  bool IsSpared(TrialLesson by) const;
};

}  // namespace hpo::sampler
