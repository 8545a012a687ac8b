// Decides whether a running trial should stop early. Pure functions of the history.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/study/study.h"
#include "sampler/history.h"

namespace hpo {

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

// Why a trial as long as this completed one is never stopped: it has reported epochs, and the
// pruner waits for as many, in a key that is most likely meant in steps. Empty: it may be.
std::string WhyNeverStopped(const HistoryTrial& completed, const PrunerSpec& pruner);

// The pruner that the study names; one that never prunes for "none" and for several objectives.
std::unique_ptr<Pruner> MakePruner(const StudySpec& study);

}  // namespace hpo
