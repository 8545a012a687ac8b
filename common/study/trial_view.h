// A trial with everything there is to show of it.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/study/trial.h"

namespace hpo {

struct TrialView {
  Trial trial;  // with attempts and their memory records
  // Of the attempt that counts, by step.
  std::vector<Measurement> measurements;
  std::string sampler;  // who proposed it

  // No time of a measurement is kept. For programs that want one: the trial's start plus a
  // millisecond a step, which keeps the order and is the same whenever it is asked for.
  absl::Time TimeOf(int64_t step) const { return trial.started + absl::Milliseconds(step); }
};

}  // namespace hpo
