// Why a study hands out nothing more, in words for people.
#pragma once

#include <string>

#include "common/protocol/worker_exchange.h"
#include "server/studies/study_runtime.h"

namespace hpo {

// What keeps the study from handing out trials, and how to go on: failures, a stop, a pause; empty:
// nothing of this kind.
std::string WhyHeld(const std::string& study, const StudyStanding& standing);

// Of one that is finished.
FinishedStudy EndOf(const StudyRuntime& study);

}  // namespace hpo
