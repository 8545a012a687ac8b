// What the time of workers went into, by how attempts ended. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/study/study_status.h"
#include "server/storage/attempt_store.h"

namespace hpo::server {

// What an attempt's time was for.
enum class TimeUse { kUseful, kOutOfMemory, kPruned, kFailed, kCancelled, kPreempted, kLost };

// Of an attempt that has ended: `state` and `outcome` (its kind; empty: none) as they are stored.
TimeUse UseOf(const std::string& state, const std::string& outcome);

// As proto/hpo/v1/analysis.proto has it.
char LetterOf(TimeUse use);

// GPU time: each attempt of the study has taken `gpus` of them for as long as it took.
TimeByUse SumByUse(const std::vector<AttemptStore::EndedTime>& times, int64_t gpus);

}  // namespace hpo::server
