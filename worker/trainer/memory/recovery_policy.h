// What follows an out-of-memory error: the verdict of each kind, and the steps of the ladder that
// leads there. Pure; free of torch.
//
// The ladder, top to bottom:
//  1. The message is copied out of the exception: TryBatch (memory/oom_guard.h).
//  2. The scope that owns the graph is left: TryBatch. What of a failed backward waits in torch's
//     queue is dropped: DropFailedBackward (training/backward_barrier.h).
//  3. Gradients are dropped: TryBatch, `drop`.
//  4. Random state and data position are those of before the step: functions of the step
//     (ComputeGradients).
//  5. Caches go back to the device: TryBatch.
//  6. Workspaces too, where nothing smaller is left: RecoveryAction::kRenewWorkspaces.
//  7. Live bytes are compared with the baseline, exactly: TryBatch.
//  8. A smaller plan, by the corrected estimate: a smaller micro-batch, then layers computed again
//     where the study allows it (Replanner, memory/replanner.h).
//  9. The same effective batch runs again: TrialMemory::Run (training/trial_memory.h).
// 10. What was seen is told, "needs more than ...": StageLog::OutOfMemoryMet.
#pragma once

#include <cstdint>
#include <map>
#include <variant>

#include "common/study/trial.h"

namespace hpo::trainer {

enum class RecoveryAction {
  kShrink,           // a smaller plan, then again
  kRedo,             // the same again, now that caches are empty
  kRenewWorkspaces,  // the same again, with new workspaces of the libraries
  kEnd,              // the attempt is over, out of memory
  kExpandSegments,   // kRedo, in segments that grow
  kFail,             // the attempt is over: what only looked like memory does not go away
  kLoseDevice,       // the attempt is over, and the process too
};

struct RecoveryCase {
  OomKind kind = OomKind::kConfiguration;
  // There is something smaller, and the policy allows it.
  bool can_shrink = true;
  bool steps_done = false;  // an optimizer step would be lost
  int64_t redos = 0;        // answers kRedo so far in this trial, for this kind
  bool workspaces_renewed = false;
};

// kConfiguration, kLatePeak  (A, D)  shrink. The end teaches the sampler.
// kDirtyDevice               (B)     nothing of ours is too big: end, to be queued again, unless
//                                    steps would be lost; then shrink
// kFragmentation, kHost      (C, E)  once the same again, then shrink
// Where shrinking is out of the question, A, C and D renew workspaces once before the end. A lost
// device is no case: its process ends.
RecoveryAction DecideRecovery(const RecoveryCase& now);

// What a trial has tried so far, and the error that it deals with.
struct RecoveryState {
  RecoveryCase now;
  bool certain = true;  // MemoryFault::certain of that error
  std::map<OomKind, int64_t> redos;
  bool workspaces_renewed = false;
};

// An error was met, and cleaned up after.
struct FaultMet {
  OomKind kind = OomKind::kConfiguration;
  bool device_lost = false;
  bool clean = true;       // BatchAttempt::clean
  bool certain = true;     // MemoryFault::certain
  bool may_shrink = true;  // the policy allows it
  bool steps_done = false;
};
// The last action could not be done: there is nothing smaller, or no workspace to renew.
struct NothingDone {};

using RecoveryEvent = std::variant<FaultMet, NothingDone>;

struct RecoveryStep {
  RecoveryState state;
  RecoveryAction action = RecoveryAction::kEnd;
};

// DecideRecovery over the course of a trial, one error after another. What is not clean ends; all
// other errors count.
RecoveryStep NextRecovery(RecoveryState state, const RecoveryEvent& event);

}  // namespace hpo::trainer
