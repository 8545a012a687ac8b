// Why a study hands out nothing more, in words for people.
#pragma once

#include <string>

#include "common/protocol/worker_exchange.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// What keeps the study from handing out trials, and how to go on: failures, a stop, a pause; empty:
// nothing of this kind.
std::string WhyHeld(const std::string& study, const StudyStanding& standing);

// Why no further trial begins while some still run, of a study that WhyHeld says nothing of; empty:
// one may, or how many trials the budget has is all the reason.
std::string WhyEnding(const StudyStanding& standing);

// Of one that is finished.
FinishedStudy EndOf(const StudyRuntime& study);

}  // namespace hpo::server
