// What the time of workers went into, by how attempts ended. Pure.
#pragma once

#include <vector>

#include "common/study/study_status.h"
#include "server/storage/attempt_store.h"

namespace hpo::server {

TimeByUse SumByUse(const std::vector<AttemptStore::EndedTime>& times);

}  // namespace hpo::server
