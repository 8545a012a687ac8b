// Trials that continued with smaller micro-batches: the steps down, and how they ended.
import type { Attempt, MemoryPlan, Trial } from "../../api/messages";
import { int } from "../../api/values";
import { count } from "../../format/format";

// "512", "4 × 128", "3 × 134 + 110": how a batch is divided.
export function batchText(effective: number, micro: number): string {
  if (micro <= 0 || micro >= effective) return count(effective);
  const whole = Math.floor(effective / micro);
  const rest = effective - whole * micro;
  return `${count(whole)} × ${count(micro)}${rest > 0 ? ` + ${count(rest)}` : ""}`;
}

export interface Step {
  micro: number;
  text: string; // "3 × 134 + 110", with what else the plan changes
}

function stepOf(plan: MemoryPlan, before: MemoryPlan | undefined): Step {
  const effective = int(plan.effective_batch);
  const micro = int(plan.micro_batch) || effective;
  const more: string[] = [];
  if (plan.checkpointing && !before?.checkpointing) more.push("activation checkpointing");
  if (before !== undefined && plan.precision !== undefined && plan.precision !== before.precision) more.push(plan.precision.replace("PRECISION_", "").toLowerCase());
  return { micro, text: [batchText(effective, micro), ...more].join(", ") };
}

// The plans of an attempt in order: as it began, each that replaced the one before (GetTrial alone
// knows them), and the last.
export function attemptPlans(attempt: Attempt): MemoryPlan[] {
  const replans = (attempt.memory_records ?? []).filter(({ stage }) => stage === "replan").map(({ plan }) => plan);
  const known = [attempt.plan, ...replans, attempt.final_plan].filter((plan) => plan !== undefined);
  // A program that says nothing of its plan has a single sample as its last one.
  const batch = int(known[0]?.effective_batch);
  const plans = known.filter((plan) => int(plan.effective_batch) === batch || int(plan.effective_batch) > 1);
  return plans.filter((plan, index) => index === 0 || !samePlan(plan, plans[index - 1]));
}

function samePlan(a: MemoryPlan, b: MemoryPlan | undefined): boolean {
  return (
    int(a.micro_batch) === int(b?.micro_batch) &&
    int(a.effective_batch) === int(b?.effective_batch) &&
    (a.checkpointing ?? false) === (b?.checkpointing ?? false) &&
    a.precision === b?.precision
  );
}

// Over all attempts, without repetition.
export function stepsOf(trial: Trial): Step[] {
  const plans = (trial.attempts ?? []).flatMap(attemptPlans);
  const kept = plans.filter((plan, index) => index === 0 || !samePlan(plan, plans[index - 1]));
  return kept.map((plan, index) => stepOf(plan, kept[index - 1]));
}

export interface LadderTrial {
  trial: Trial;
  steps: Step[];
  ooms: number; // out-of-memory errors that its attempts met
  attempts: number;
}

// Trials that stepped down, or met an out-of-memory error.
export function laddersOf(trials: readonly Trial[]): LadderTrial[] {
  return trials
    .map((trial) => ({
      trial,
      steps: stepsOf(trial),
      ooms: (trial.attempts ?? []).reduce((sum, { memory }) => sum + int(memory?.num_ooms), 0),
      attempts: trial.attempts?.length ?? 0,
    }))
    .filter(({ steps, ooms }) => steps.length > 1 || ooms > 0);
}

export function ladderSentence(ladders: readonly LadderTrial[]): string {
  const completed = ladders.filter(({ trial }) => trial.state === "TRIAL_STATE_COMPLETED").length;
  if (ladders.length === 1) return `One trial ran out of memory or was split further; it ${completed === 1 ? "completed" : "did not complete"}.`;
  return `${count(ladders.length)} trials ran out of memory or were split further; ${completed === ladders.length ? "all" : count(completed)} of them completed.`;
}
