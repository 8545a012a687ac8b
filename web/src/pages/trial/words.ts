// A trial in words: how it ended and why, and how its batches were run.
import type { Attempt, Failed, MemoryPlan, MemoryRecord, MetricConstraint, OutOfMemory, Outcome, StoppedByPruner, Trial, Value } from "../../api/messages";
import { double, instant, int } from "../../api/values";
import { bytes, count, number, plural } from "../../format/format";
import { TIME_LIMIT } from "../../format/pruned";

// "512 = 3 × 134 + 110, checkpointing, bfloat16", as `hpo trial show` prints it.
export function planText(plan: MemoryPlan): string {
  const batch = int(plan.effective_batch);
  const micro = Math.max(1, int(plan.micro_batch));
  const parts = Math.ceil(batch / micro);
  const rest = batch % micro;
  const split = rest === 0 ? `${batch} = ${parts} × ${micro}` : `${batch} = ${parts - 1} × ${micro} + ${rest}`;
  const precision = (plan.precision ?? "").replace(/^PRECISION_/, "").toLowerCase();
  return [split, plan.checkpointing ? "checkpointing" : "", precision === "float32" || precision === "unspecified" ? "" : precision]
    .filter((word) => word !== "")
    .join(", ");
}

type Params = Record<string, Value>;

// A program of the user's own may know of no batch, and of imported trials no plan is known: theirs is
// then a single sample, whatever their parameters say.
export function hasBatch(params: Params | undefined, plan: MemoryPlan | undefined): plan is MemoryPlan {
  return plan !== undefined && (int(plan.effective_batch) > 1 || int(params?.["train.batch_size"]?.int_value) === 1);
}

function samePlan(left: MemoryPlan, right: MemoryPlan): boolean {
  return planText(left) === planText(right);
}

// How an attempt ran its batches, from the first plan to the last; "" where there is no batch.
export function plansText(attempt: Attempt, params: Params | undefined): string {
  const { plan, final_plan: last } = attempt;
  if (!hasBatch(params, plan)) return "";
  return last === undefined || samePlan(plan, last) ? planText(plan) : `${planText(plan)}, then ${planText(last)}`;
}

export function metricsText(metrics: Record<string, unknown> | undefined): string {
  return Object.entries(metrics ?? {})
    .map(([name, value]) => `${name} ${number(Number(value))}`)
    .join(", ");
}

function sizeText(size: number): string {
  return size > 0 ? bytes(size) : "an unknown amount";
}

const OOM_KINDS: Record<string, string> = {
  CONFIGURATION: "The configuration is too large for this GPU.",
  DIRTY_DEVICE: "Other processes held memory of the GPU.",
  FRAGMENTATION: "Enough memory was free, but not in one piece.",
  LATE_PEAK: "The peak came late: batches before it were smaller.",
  HOST: "The host ran out of memory, not the GPU.",
};

function bareName(name: string | undefined, prefix: string): string {
  return (name ?? "").replace(prefix, "");
}

export function oomKindText(oom: OutOfMemory): string {
  return OOM_KINDS[bareName(oom.kind, "OOM_KIND_")] ?? "";
}

const FAILURES: Record<string, string> = {
  BAD_DATA: "The data cannot be used.",
  BAD_MODEL: "The model cannot be used.",
  BAD_CONFIGURATION: "The configuration cannot be used.",
  DIVERGED: "The training diverged.",
  TRAINER_CRASHED: "The training program crashed.",
  TRAINER_KILLED: "The training program was killed.",
  DEVICE_LOST: "The GPU was lost.",
  PROTOCOL: "The training program and the worker did not understand each other.",
  WORKER_LOST: "The worker was lost.",
  INTERNAL: "The training program ended with an error.",
};

export function failureText(failed: Failed): string {
  return FAILURES[bareName(failed.failure_class, "FAILURE_CLASS_")] ?? "The trial failed.";
}

// What stands between a failure's cause and the last lines that the program printed.
const LAST_OUTPUT = "; its last output:";
const TRACEBACK = "Traceback (most recent call last)";

// The line of an error's text that says the most: that of its last traceback; else what the worker
// says, and the last line that the program printed.
export function reasonOf(message: string): string {
  const head = message.lastIndexOf(TRACEBACK);
  if (head >= 0) {
    const lines = message.slice(head).split("\n").slice(1);
    const error = lines.find((line) => line.trim() !== "" && !/^[\s\u2500-\u257f]/.test(line));
    if (error !== undefined) return error.trimEnd();
  }
  const last = message.trimEnd().split("\n").at(-1)?.trim() ?? "";
  const output = message.indexOf(LAST_OUTPUT);
  return output < 0 ? last : `${message.slice(0, output)}${LAST_OUTPUT} ${last}`;
}

function oomSentence(oom: OutOfMemory, params: Params | undefined): string {
  if (oom.predicted) {
    return `It was pruned before it started: it needs ${sizeText(int(oom.needed_bytes))} of GPU memory, and ${sizeText(int(oom.limit_bytes))} is allowed.`;
  }
  const memory = oom.kind === "OOM_KIND_HOST" ? "host memory" : "GPU memory";
  const message = oom.error_message ?? "";
  if (int(oom.requested_bytes) === 0 && (oom.phase ?? "") === "" && message !== "") return `It was pruned, because it ran out of ${memory}: ${reasonOf(message)}`;
  const where = (oom.phase ?? "") === "" ? "in a step" : `in ${oom.phase}`;
  const parts = hasBatch(params, oom.plan) && int(oom.plan.micro_batch) < int(oom.plan.effective_batch) ? `, even with the batch ${planText(oom.plan)}` : "";
  return `It was pruned, because it ran out of ${memory} ${where} at step ${count(int(oom.step))}${parts}: it requested ${sizeText(int(oom.requested_bytes))} more at a peak of ${sizeText(int(oom.peak_bytes))}, and ${sizeText(int(oom.limit_bytes))} is allowed.`;
}

function prunerSentence(stopped: StoppedByPruner): string {
  const metrics = metricsText(stopped.metrics);
  const step = count(int(stopped.step));
  const how =
    stopped.pruner === TIME_LIMIT
      ? `at step ${step}, because its time limit was used up`
      : `by the ${(stopped.pruner ?? "") === "" ? "" : `${stopped.pruner} `}pruner at step ${step}, because others were better there`;
  return `It was pruned ${how}${metrics === "" ? "" : `: ${metrics}`}.`;
}

function completedSentence(trial: Trial, metrics: Record<string, unknown>): string {
  const attempts = trial.attempts ?? [];
  const met = attempts.reduce((sum, { memory }) => sum + int(memory?.num_ooms), 0);
  const plan = attempts.at(-1)?.final_plan;
  const what = Object.keys(metrics).length === 0 ? "It reported no metrics." : "It ran to its end.";
  if (met === 0) return what;
  const how = hasBatch(trial.params, plan) ? `: the last plan was ${planText(plan)}` : "";
  return `${what} It met ${plural(met, "out-of-memory error")} on the way and recovered${how}.`;
}

// One or two sentences: how it ended, and why.
export function outcomeText(outcome: Outcome, trial: Trial): string {
  if (outcome.completed) return completedSentence(trial, outcome.completed.metrics ?? {});
  if (outcome.stopped_by_pruner) return prunerSentence(outcome.stopped_by_pruner);
  if (outcome.out_of_memory) return oomSentence(outcome.out_of_memory, trial.params);
  if (outcome.failed) {
    const message = outcome.failed.message ?? "";
    return message === "" ? `${failureText(outcome.failed)} It left no message.` : `${failureText(outcome.failed)} ${reasonOf(message)}`;
  }
  const reason = outcome.cancelled?.reason ?? "";
  return reason === "" ? "It was cancelled; nobody gave a reason." : `It was cancelled: ${reason}`;
}

export function isImported(trial: Trial): boolean {
  return (trial.origin ?? "") !== "";
}

// Seconds that it took, or has taken until `now_ms`; undefined where that is not known: the server
// keeps an imported trial without times as one that took none.
export function secondsOf(trial: Trial, now_ms: number): number | undefined {
  const [started, ended] = [instant(trial.started), instant(trial.ended)];
  if (started === undefined || (isImported(trial) && started === ended)) return undefined;
  return ((ended ?? now_ms) - started) / 1000;
}

// What a trial without an outcome does or waits for.
export function openText(trial: Trial): string {
  const more = int(trial.min_capacity_bytes);
  if (trial.state === "TRIAL_STATE_RUNNING") return `It runs on ${trial.attempts?.at(-1)?.worker ?? "a worker"}.`;
  return more > 0 ? `It waits for a worker with more than ${bytes(more)} of GPU memory.` : "It waits for a worker.";
}

// "at least 0.8", "at most 30": what a metric violates; "" where it is kept.
export function excessText(constraint: MetricConstraint, metrics: Record<string, unknown>): string {
  const name = constraint.metric ?? "";
  const low = constraint.at_least === undefined ? Number.NEGATIVE_INFINITY : double(constraint.at_least);
  const high = constraint.at_most === undefined ? Number.POSITIVE_INFINITY : double(constraint.at_most);
  const wanted = [low > Number.NEGATIVE_INFINITY && `at least ${number(low)}`, high < Number.POSITIVE_INFINITY && `at most ${number(high)}`].filter(Boolean).join(" and ");
  const value = metrics[name];
  if (value === undefined) return `${name} must be ${wanted}, and was not reported.`;
  const reported = Number(value);
  return reported >= low && reported <= high ? "" : `${name} must be ${wanted}, and is ${number(reported)}.`;
}

// Facts of an out-of-memory error, those that are known.
export function oomFacts(oom: OutOfMemory, params: Params | undefined): [string, string][] {
  const size = (value: OutOfMemory["peak_bytes"]) => (int(value) > 0 ? bytes(int(value)) : "");
  const facts: [string, string][] = [
    ["Kind", bareName(oom.kind, "OOM_KIND_").toLowerCase().replaceAll("_", " ")],
    ["Stage", oom.phase ?? ""],
    ["Step", oom.predicted ? "" : count(int(oom.step))],
    ["Requested", size(oom.requested_bytes)],
    ["Peak before", size(oom.peak_bytes)],
    ["Needed", size(oom.needed_bytes)],
    ["Limit", size(oom.limit_bytes)],
    ["Smallest plan that was tried", hasBatch(params, oom.plan) ? planText(oom.plan) : ""],
  ];
  return facts.filter(([, text]) => text !== "" && text !== "unspecified");
}

// What a record of memory says besides its sizes.
export function recordNote(record: MemoryRecord): string {
  const notes: string[] = [];
  if (record.plan) notes.push(`batch ${planText(record.plan)}`);
  if (int(record.needed_bytes) > 0) notes.push(`needed ${bytes(int(record.needed_bytes))}`);
  if (int(record.growth_bytes) > 0) notes.push(`${bytes(int(record.growth_bytes))} did not come back: ${record.growth_stage ?? ""}`);
  return notes.join(", ");
}
