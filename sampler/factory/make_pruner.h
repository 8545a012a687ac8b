// Makes the pruner that a study asks for.
#pragma once

#include <memory>

#include "common/study/study.h"
#include "sampler/api/pruner.h"

namespace hpo::sampler {

// The pruner that the study names; one that never prunes for "none" and for several objectives.
std::unique_ptr<Pruner> MakePruner(const StudySpec& study);

// Why a trial as long as this completed one is never stopped: it has reported epochs, and the
// pruner waits for as many, in a key that is most likely meant in steps. Empty: it may be.
std::string WhyNeverStopped(const HistoryTrial& completed, const PrunerSpec& pruner);

}  // namespace hpo::sampler
