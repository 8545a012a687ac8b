// What an attempt is to run, the same on every machine: the server assigns it to a worker, the
// worker hands it on to a trainer.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/space/params.h"
#include "common/study/study.h"
#include "common/study/trial.h"

namespace hpo {

struct TrialTask {
  // Parameters of the trial over the study's trainer defaults: complete.
  ParamMap params;
  // Of these two the fields that are sent are those with InJob in common/study/study_fields.h. The
  // worker replaces the names of the data files by paths.
  TrainerSpec trainer;
  MemorySpec memory;
  Objective objective;    // first objective: decides which weights are best
  bool admission = true;  // refuse by estimate before starting
  Bytes limit;            // budget of live bytes; 0: none
  MemoryPlan plan;        // ignored by trainers without the capability `plan`
  Bytes predicted;        // the server's estimate for `plan`; 0: none
  uint64_t seed = 0;
  bool operator==(const TrialTask&) const = default;
};

}  // namespace hpo
