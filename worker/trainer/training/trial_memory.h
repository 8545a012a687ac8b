// Keeps a training within its memory, at a constant effective batch: the plan in force, the
// recovery from out-of-memory errors, and the watch over live bytes that grow between steps.
#pragma once

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "common/study/trial.h"
#include "worker/trainer/checkpoints/loop_state.h"
#include "worker/trainer/memory/growth_watch.h"
#include "worker/trainer/memory/oom_guard.h"
#include "worker/trainer/memory/recovery_policy.h"
#include "worker/trainer/memory/replanner.h"
#include "worker/trainer/memory/thrash_guard.h"
#include "worker/trainer/training/train_loop_parts.h"

namespace hpo::trainer {

// One training's. Not thread-safe. Throws what torch throws, but for memory.
class TrialMemory {
 public:
  // The plan and evaluation rows in force are those of `state`, and put there. All outlive this.
  // What is live now is the baseline between steps: parameters and moments.
  TrialMemory(const TrainLoopParts& parts, LoopState& state);

  // Runs `work` until memory suffices, with a smaller plan or half the rows each time. nullopt: it
  // ran; else how the attempt ends. `work` as TryBatch wants it.
  std::optional<TrialOutcome> Train(absl::FunctionRef<void()> work);
  std::optional<TrialOutcome> Evaluate(absl::FunctionRef<void()> work);

  // Compares the peak since StartPeak with the prediction; takes a smaller plan where it is wrong.
  void JudgeProbe();
  // At the end of `stage`, a quiet point (memory/growth_watch.h).
  void Watch(const char* stage);
  void WatchStep();

  bool clean() const { return clean_; }  // see OutcomeMessage

 private:
  std::optional<TrialOutcome> Run(absl::FunctionRef<void()> work, absl::FunctionRef<bool()> shrink);
  // After a fault: nullopt when the work may be redone.
  std::optional<TrialOutcome> Recover(const BatchAttempt& attempt,
                                      absl::FunctionRef<bool()> shrink);
  // Reports what was needed, and corrects the estimate by it. Returns the kind.
  OomKind ReportShortage(const BatchAttempt& attempt);
  bool ShrinkPlan();
  bool ShrinkEvaluation();
  void UsePlan(const MemoryPlan& plan, const std::string& why);
  void WatchThrashing();
  bool may_shrink() const { return parts_.job.task.memory.policy == MemoryPolicy::kPlan; }

  const TrainLoopParts& parts_;
  LoopState& state_;
  Replanner replanner_;
  const Bytes baseline_;
  RecoveryState recovery_;
  bool renew_workspaces_ = false;  // before the next redo
  ThrashGuard thrash_guard_;
  GrowthWatch growth_watch_;
  bool clean_ = true;
};

}  // namespace hpo::trainer
