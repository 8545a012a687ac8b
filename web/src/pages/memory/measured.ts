// Predicted against measured memory of a study's trials.
import type { QueryTrialsResponse } from "../../api/messages";
import { bytes, count, percent, plural } from "../../format/format";
import type { Letter } from "../../parts/states";
import { lettersOf, numbersOf } from "./rows";

export const MEASURES = {
  live: { column: "live_bytes", word: "Live", says: "the live peak, which is the memory of tensors" },
  reserved: { column: "reserved_bytes", word: "Reserved", says: "the reserved peak, which PyTorch's caching allocator took from the GPU" },
  device: { column: "device_bytes", word: "Device", says: "the device peak, which the whole process held on the GPU" },
} as const;

export type Measure = keyof typeof MEASURES;

export const MEASURED_COLUMNS = ["state", "why", "violation", "predicted_bytes", "live_bytes", "reserved_bytes", "device_bytes", "limit_bytes"];

export function measureOf(word: string): Measure {
  return word === "live" || word === "device" ? word : "reserved";
}

export interface Measured {
  numbers: number[];
  letters: Letter[];
  predicted: number[]; // bytes
  measured: number[];
  limits: number[]; // 0: unknown
  // Whether the measurement is of the plan that was predicted: it was made to the end, and the plan
  // was not replaced by a smaller one.
  comparable: boolean[];
}

// Of trials that have both figures.
export function measuredOf(answer: QueryTrialsResponse, measure: Measure): Measured {
  const found: Measured = { numbers: [], letters: [], predicted: [], measured: [], limits: [], comparable: [] };
  const letters = lettersOf(answer);
  const predicted = numbersOf(answer, "predicted_bytes");
  const measured = numbersOf(answer, MEASURES[measure].column);
  const limits = numbersOf(answer, "limit_bytes");
  (answer.numbers ?? []).forEach((number, row) => {
    const [letter, x = 0, y = 0, limit = 0] = [letters[row], predicted[row], measured[row], limits[row]];
    if (letter === undefined || x <= 0 || y <= 0) return;
    found.numbers.push(number);
    found.letters.push(letter);
    found.predicted.push(x);
    found.measured.push(y);
    found.limits.push(limit);
    found.comparable.push("CIP".includes(letter) && (limit === 0 || x <= limit));
  });
  return found;
}

export interface ErrorStatistics {
  trials: number;
  median: number; // of the error's size, as a fraction of the prediction
  above: number; // trials that took more than predicted
  worst: number; // the largest excess over the prediction, as a fraction; at most 0: none
  margin95: number; // the margin with which 95 % of the trials stay within the prediction
  slack: number; // median of what the prediction left of the limit, as a fraction; NaN: unknown
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}

export function statistics(points: Measured): ErrorStatistics | undefined {
  const errors: number[] = [];
  const slacks: number[] = [];
  points.comparable.forEach((comparable, index) => {
    if (!comparable) return;
    const [x = 0, y = 0, limit = 0] = [points.predicted[index], points.measured[index], points.limits[index]];
    errors.push(y / x - 1);
    if (limit > 0) slacks.push(1 - x / limit);
  });
  if (errors.length === 0) return undefined;
  const sorted = ascending(errors);
  return {
    trials: errors.length,
    median: quantile(ascending(errors.map(Math.abs)), 0.5),
    above: errors.filter((error) => error > 0).length,
    worst: sorted[sorted.length - 1] ?? 0,
    margin95: Math.max(0, quantile(sorted, 0.95)),
    slack: quantile(ascending(slacks), 0.5),
  };
}

// What the figures say, in sentences.
export function errorSentences(stats: ErrorStatistics, left: number): string[] {
  const { trials, median, above, worst, margin95, slack } = stats;
  const sentences = [
    `In ${plural(trials, "trial")}, the prediction differs from the measurement by ${percent(median)} at the median.`,
    above === 0
      ? "No trial took more than predicted."
      : `${plural(above, "trial")} (${percent(above / trials)}) took more than predicted, at most ${percent(worst)} more; ${percent(margin95)} more than predicted is enough for 95 % of the trials.`,
  ];
  if (!Number.isNaN(slack)) sentences.push(`At the median, the prediction is ${percent(slack)} below the limit.`);
  if (left > 0) {
    sentences.push(
      `The figures leave out ${plural(left, "trial")}: ${left === 1 ? "it" : "they"} ran with other micro-batches than predicted, or not to the end.`,
    );
  }
  return sentences;
}

// How often trials ran out of memory although they were started.
export function riskSentence(started: number, met: number, recovered: number): string {
  if (started === 0) return "No trial has started yet.";
  if (met === 0) return `None of ${plural(started, "started trial")} met an out-of-memory error.`;
  const rest = recovered === 0 ? "none of them completed" : `${count(recovered)} of them completed with smaller micro-batches`;
  return `${count(met)} of ${plural(started, "started trial")} (${percent(met / started)}) met an out-of-memory error; ${rest}.`;
}

export function pointWords(points: Measured, index: number): string {
  const [x = 0, y = 0, limit = 0] = [points.predicted[index], points.measured[index], points.limits[index]];
  const difference = y / x - 1;
  return `predicted ${bytes(x)}, measured ${bytes(y)} (${difference > 0 ? "+" : ""}${percent(difference)})${limit > 0 ? `, limit ${bytes(limit)}` : ""}`;
}
