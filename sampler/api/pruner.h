// Decides whether a running trial should stop early. Pure functions of the history.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/study/study.h"
#include "sampler/api/history.h"

namespace hpo::sampler {

// Why a trial should stop.
struct PruneDecision {
  std::string pruner;  // "median"
  int64_t step = 0;
  std::string why;  // "0.41 after step 200; the median of 7 trials is 0.52"
};

// Stateless; safe from any thread.
class Pruner {
 public:
  virtual ~Pruner() = default;

  // Looks at the trial's intermediate values up to its last one. nullopt: go on.
  virtual std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const = 0;
};

}  // namespace hpo::sampler
