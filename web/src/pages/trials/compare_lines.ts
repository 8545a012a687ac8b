// What 2 to 20 trials have in common, and where they differ.
import type { Attempt, Study, Trial, Value } from "../../api/messages";
import { double, int } from "../../api/values";
import { bytes, count, duration, number } from "../../format/format";
import { isMinimized } from "../../format/study";
import { trialWord } from "../../parts/states";
import { exactText } from "../trial/text";
import { limitOf } from "../trial/attempts";
import { isImported, openText, outcomeText, plansText, secondsOf } from "../trial/words";

export interface Line {
  name: string;
  texts: string[]; // of each trial; "": it has none
  best?: number; // the place of the trial with the best value, where one is better
}

export interface LineGroup {
  title: string;
  lines: Line[];
}

export function differs(line: Line): boolean {
  return line.texts.some((text) => text !== line.texts[0]);
}

// The place of the best of `values`, where they are not all the same.
export function bestPlace(values: readonly (number | undefined)[], minimized: boolean): number | undefined {
  const finite = values.filter((value): value is number => value !== undefined && Number.isFinite(value));
  if (new Set(finite).size < 2) return undefined;
  return values.indexOf(minimized ? Math.min(...finite) : Math.max(...finite));
}

function lastAttempt(trial: Trial): Attempt | undefined {
  return trial.attempts?.at(-1);
}

function metricsOf(trial: Trial): Record<string, unknown> {
  return trial.outcome?.completed?.metrics ?? trial.outcome?.stopped_by_pruner?.metrics ?? trial.last_measurement?.metrics ?? {};
}

function resultLines(trials: readonly Trial[], study: Study): Line[] {
  const objectives = study.objectives ?? [];
  const measured = new Set(trials.flatMap((trial) => Object.keys(metricsOf(trial))));
  const names = [...new Set([...objectives.map(({ metric }) => metric ?? "").filter((name) => measured.has(name)), ...[...measured].sort()])];
  const metrics = names.map((name): Line => {
    const values = trials.map((trial) => (metricsOf(trial)[name] === undefined ? undefined : double(metricsOf(trial)[name] as number)));
    const objective = objectives.find(({ metric }) => metric === name);
    const best = objective === undefined ? undefined : bestPlace(values, isMinimized(objective));
    const texts = values.map((value) => (value === undefined ? "" : number(value)));
    return best === undefined ? { name, texts } : { name, texts, best };
  });
  return [
    { name: "State", texts: trials.map(trialWord) },
    ...metrics,
    { name: "Time", texts: trials.map(timeText) },
    { name: "How it ended", texts: trials.map((trial) => (trial.outcome === undefined ? openText(trial) : outcomeText(trial.outcome, trial))) },
  ];
}

function timeText(trial: Trial): string {
  const took = trial.ended === undefined ? undefined : secondsOf(trial, 0);
  return took === undefined ? "" : duration(took);
}

// "": nothing was measured.
function oomErrorsText(trial: Trial): string {
  const reports = (trial.attempts ?? []).flatMap(({ memory }) => memory ?? []);
  return reports.length === 0 ? "" : count(reports.reduce((sum, { num_ooms }) => sum + int(num_ooms), 0));
}

// In the order of the search space, those that it does not have any more last.
function parameterLines(trials: readonly Trial[], study: Study): Line[] {
  const known = (study.space?.parameters ?? []).map(({ name }) => name ?? "");
  const names = new Set([...known, ...trials.flatMap((trial) => Object.keys(trial.params ?? {}))]);
  return [...names].map((name) => ({ name, texts: parameterTexts(trials.map((trial) => trial.params?.[name])) }));
}

const FEWEST_DIGITS = 5;
const MOST_DIGITS = 17;

// Numbers with as few digits as tell them apart.
export function parameterTexts(values: readonly (Value | undefined)[]): string[] {
  const exact = values.map(exactText);
  const different = new Set(exact).size;
  for (let digits = FEWEST_DIGITS; digits < MOST_DIGITS; digits += 1) {
    const texts = values.map((value, index) => (value?.double_value === undefined ? (exact[index] ?? "") : exactText({ double_value: Number(double(value.double_value).toPrecision(digits)) })));
    if (new Set(texts).size === different) return texts;
  }
  return exact;
}

function planLines(trials: readonly Trial[]): Line[] {
  return [
    { name: "Batch = micro-batches", texts: trials.map((trial) => (trial.attempts ?? []).map((attempt) => plansText(attempt, trial.params)).findLast((text) => text !== "") ?? "") },
    { name: "Attempts", texts: trials.map((trial) => (isImported(trial) ? "" : count((trial.attempts ?? []).length))) },
    { name: "Worker", texts: trials.map((trial) => lastAttempt(trial)?.worker ?? "") },
    { name: "Proposed by", texts: trials.map((trial) => trial.sampler ?? "") },
  ];
}

function memoryLines(trials: readonly Trial[]): Line[] {
  const size = (name: string, of: (attempt: Attempt) => number): Line => ({
    name,
    texts: trials.map((trial) => {
      const attempt = lastAttempt(trial);
      const value = attempt === undefined ? 0 : of(attempt);
      return value > 0 ? bytes(value) : "";
    }),
  });
  return [
    size("Predicted", (attempt) => int(attempt.predicted_bytes)),
    size("Live peak", (attempt) => int(attempt.memory?.live_peak_bytes)),
    size("Reserved peak", (attempt) => int(attempt.memory?.reserved_peak_bytes)),
    size("Device peak", (attempt) => int(attempt.memory?.device_peak_bytes)),
    size("Limit", limitOf),
    { name: "Peak in", texts: trials.map((trial) => lastAttempt(trial)?.memory?.peak_phase ?? "") },
    { name: "Out-of-memory errors", texts: trials.map(oomErrorsText) },
  ];
}

// All lines that some trial has a text for.
export function compareLines(trials: readonly Trial[], study: Study): LineGroup[] {
  const groups: LineGroup[] = [
    { title: "Parameters", lines: parameterLines(trials, study) },
    { title: "Results", lines: resultLines(trials, study) },
    { title: "How it was run", lines: planLines(trials) },
    { title: "Memory", lines: memoryLines(trials) },
  ];
  return groups.map(({ title, lines }) => ({ title, lines: lines.filter(({ texts }) => texts.some((text) => text !== "")) }));
}

// Curves over the union of their steps: a column of values for each, null where it has none.
export function alignedCurves(curves: readonly { steps?: (string | number)[] | undefined; values?: (number | string)[] | undefined }[]): [number[], ...(number | null)[][]] {
  const steps = [...new Set(curves.flatMap((curve) => (curve.steps ?? []).map(Number)))].sort((left, right) => left - right);
  const place = new Map(steps.map((step, index) => [step, index]));
  const columns = curves.map((curve) => {
    const column: (number | null)[] = steps.map(() => null);
    for (const [index, step] of (curve.steps ?? []).entries()) {
      const value = Number(curve.values?.[index]);
      column[place.get(Number(step)) ?? 0] = Number.isFinite(value) ? value : null;
    }
    return column;
  });
  return [steps, ...columns];
}
