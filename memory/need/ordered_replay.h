// What a trial's batches take of a card in the order in which they come, for those who know it.
// What the caching allocator reserves depends on that order: no draw of batches bounds it.
#pragma once

#include "absl/status/statusor.h"
#include "memory/need/memory_estimate.h"
#include "memory/trace/trial_passes.h"

namespace hpo::memory {

// Steps and batches of evaluations that differ, and how many of all are played. Those that come
// later are left out: few of them make a cache grow that has met so many.
constexpr int64_t kMostDifferentPasses = 256;
constexpr int64_t kMostPlayedPasses = 1000;

// The most that torch's caching allocator reserves over `passes`, workspaces included and the base
// left out, without a limit. Pure. As a replay of all steps would say: what has found all it needs
// since the cache last grew would find it again, and is not played again.
//   InvalidArgument, Unimplemented  as EstimateMemory
//   Unimplemented                   on a device that is not a card, or of too large tensors
absl::StatusOr<Bytes> ReplayReservedPeak(const EstimateInput& input, const MemoryPlan& plan,
                                         const TrialPasses& passes);

}  // namespace hpo::memory
