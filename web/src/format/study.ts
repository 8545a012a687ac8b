// What a study says, in words and numbers that pages share.
import type { Objective, Study, TrialCounts } from "../api/messages";
import { double, int, seconds } from "../api/values";
import { plural } from "./format";
import { prunedText } from "./pruned";

export function isFinished(study: Study): boolean {
  return study.state === "STUDY_STATE_FINISHED";
}

// "running", "paused", "waiting", "stopped", "failed", "finished".
export function stateWord(study: Study): string {
  if ((study.failure ?? "") !== "") return "failed";
  if (isFinished(study)) return study.order === "STUDY_ORDER_STOP" ? "stopped" : "finished";
  if (study.order === "STUDY_ORDER_STOP") return "stopping";
  if (study.order === "STUDY_ORDER_PAUSE") return int(study.counts?.running) > 0 ? "pausing" : "paused";
  if (int(study.counts?.running) > 0) return "running";
  return "waiting";
}

export function isMinimized(objective: Objective | undefined): boolean {
  return objective?.direction !== "DIRECTION_MAXIMIZE";
}

// Whether the study would hand out trials if it was ordered to run, as far as its counts say. Other
// ends, such as no progress, only the server knows.
function hasTrialsLeft(study: Study): boolean {
  const { counts, budget = {} } = study;
  if (budget.wall_clock !== undefined && seconds(study.wall_clock_used) >= seconds(budget.wall_clock)) return false;
  if (budget.target !== undefined && study.best_value !== undefined && double(study.best_violation) === 0) {
    const [best, target] = [double(study.best_value), double(budget.target)];
    if (isMinimized(study.objectives?.[0]) ? best <= target : best >= target) return false;
  }
  const queued = int(counts?.queued);
  return queued > 0 || budget.trials === undefined || endedTrials(counts) + int(counts?.running) < int(budget.trials);
}

// What readers want first of a study: to pause one that hands out trials; to resume one that was
// paused, stopped or ended by failures, where it has trials left; else to extend it.
export function firstOrder(study: Study): "pause" | "resume" | "extend" {
  const isHeld = study.order === "STUDY_ORDER_PAUSE" || study.order === "STUDY_ORDER_STOP";
  if (!isFinished(study)) return isHeld ? "resume" : "pause";
  const isFailed = (study.failure ?? "") !== "";
  return (isHeld || isFailed) && hasTrialsLeft(study) ? "resume" : "extend";
}

// Why a study that is finished stays so.
function whyFinished(study: Study): string {
  return (study.waiting_for ?? "") === "" ? "its budget is used up" : (study.waiting_for ?? "");
}

// What the order to run came to.
export function resumedText(study: Study): string {
  return isFinished(study) ? `The study stays finished: ${whyFinished(study)}.` : "The study goes on.";
}

// What a change of the budget came to.
export function extendedText(study: Study): string {
  const budget = `The budget is now ${budgetText(study)}.`;
  if (!isFinished(study)) return budget;
  if (firstOrder(study) === "resume") return `${budget} Resume the study to go on.`;
  return `${budget} The study stays finished: ${whyFinished(study)}.`;
}

// Trials that count against the budget and have ended.
export function endedTrials(counts: TrialCounts | undefined): number {
  return int(counts?.completed) + int(counts?.pruned) + int(counts?.failed) + int(counts?.cancelled);
}

export function allTrials(counts: TrialCounts | undefined): number {
  return endedTrials(counts) + int(counts?.queued) + int(counts?.running) + int(counts?.imported);
}

// Whether all trials that ran were imported: what they used is not known here.
export function isUnmeasured({ counts, time_by_use }: Study): boolean {
  const ran = int(counts?.completed) + int(counts?.failed) + int(counts?.pruned) - int(counts?.oom_predicted) + int(counts?.imported);
  return time_by_use === undefined && int(counts?.running) === 0 && ran > 0;
}

export const UNMEASURED = "imported: not measured here";

// "120 of 500 trials", "120 trials".
export function budgetText(study: Study): string {
  const ended = endedTrials(study.counts);
  const trials = study.budget?.trials;
  return trials === undefined ? plural(ended, "trial") : `${ended.toLocaleString("en-US")} of ${plural(int(trials), "trial")}`;
}

// Seconds until the budget is used up at the pace so far; undefined where it cannot be known.
export function remaining(study: Study): number | undefined {
  if (isFinished(study) || study.order === "STUDY_ORDER_PAUSE") return undefined;
  const used = seconds(study.wall_clock_used);
  const limits: number[] = [];
  if (study.budget?.wall_clock !== undefined) limits.push(seconds(study.budget.wall_clock) - used);
  const ended = endedTrials(study.counts);
  if (study.budget?.trials !== undefined && ended > 0 && used > 0) {
    limits.push((used / ended) * Math.max(0, int(study.budget.trials) - ended));
  }
  return limits.length > 0 ? Math.max(0, Math.min(...limits)) : undefined;
}

export interface Use {
  word: string;
  colour: string; // of style/theme.css
  seconds: number;
  lost: boolean; // nothing came of it
}

// Worker time of ended attempts, by what it went into.
export function uses(study: Study): Use[] {
  const time = study.time_by_use ?? {};
  const use = (word: string, colour: string, value: string | undefined, lost: boolean): Use => ({
    word,
    colour,
    seconds: seconds(value),
    lost,
  });
  return [
    use("useful", "completed", time.useful, false),
    use(prunedText("PRUNER"), "pruned", time.pruned, false),
    use("out of memory", "oom", time.out_of_memory, true),
    use("failed", "failed", time.failed, true),
    use("cancelled", "cancelled", time.cancelled, true),
    use("preempted", "preempted", time.preempted, false),
    use("lost", "lost", time.lost, true),
  ];
}

function attribute(study: Study, key: string): unknown {
  const text = study.attributes?.[key];
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function tagsOf(study: Study): string[] {
  const tags = attribute(study, "hpo.tags");
  return Array.isArray(tags) ? tags.map(String) : [];
}

// "hpo.note", "owner": a text, or "".
export function attributeText(study: Study, key: string): string {
  const value = attribute(study, key);
  return value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}

// What a study that has not ended waits for; "" where it waits for nothing. An exported page is of
// another time: there nobody waits.
export function waitsFor(study: Study, live: boolean): string {
  return live && !isFinished(study) ? (study.waiting_for ?? "") : "";
}
