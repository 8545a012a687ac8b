// What fits which GPU, and which parameter to cut, in sentences.
import type { GetMemoryFitResponse, MemoryCut, MemoryFitCount } from "../../api/messages";
import { int } from "../../api/values";
import { bytes, count, percent } from "../../format/format";
import type { Gpu } from "./capacities";

export interface Share {
  fits: number;
  misfits: number;
  unknown: number;
  total: number; // of these three
}

export function shareOf(counts: MemoryFitCount | undefined): Share {
  const [fits, misfits, unknown] = [int(counts?.fits), int(counts?.does_not_fit), int(counts?.unknown)];
  return { fits, misfits, unknown, total: fits + misfits + unknown };
}

// "Cut train.batch_size to at most 16", "Drop bert-large from model.name".
export function cutAction({ parameter = "", description = "" }: MemoryCut): string {
  const rest = description.startsWith(`${parameter} `) ? description.slice(parameter.length + 1) : description;
  const bound = /^(<=|>=|<|>|=) (.+)$/.exec(rest);
  if (bound) {
    const words: Record<string, string> = { "<=": "at most", ">=": "at least", "<": "less than", ">": "more than", "=": "only" };
    return `Cut ${parameter} to ${words[bound[1] ?? ""]} ${bound[2]}`;
  }
  const without = /^without (.+)$/.exec(rest);
  return without ? `Drop ${without[1]} from ${parameter}` : `Restrict ${parameter}: ${rest}`;
}

function configurations(amount: number): string {
  return `${count(amount)} ${amount === 1 ? "configuration" : "configurations"}`;
}

// What a cut does, in one sentence; "" where there is nothing to cut.
export function cutSentence(counts: MemoryFitCount | undefined): string {
  const cut = counts?.cut;
  if (cut === undefined) return "";
  const [removed, left, lost] = [int(cut.misfits_removed), int(cut.misfits_left), int(cut.fits_lost)];
  const { fits, unknown } = shareOf(counts);
  const some = (amount: number, of: number) => (amount === of ? `all ${configurations(of)}` : `${count(amount)} of ${configurations(of)}`);
  const kept = count(fits - lost);
  const cost = lost === 0 ? "none that fit" : `${count(lost)} of ${count(fits)} that fit`;
  const rest = unknown === 0 ? "that remain" : "that remain and are known";
  return `${cutAction(cut)}: this removes ${some(removed, removed + left)} that do not fit, and ${cost}. Then ${left === 0 ? `all ${kept}` : `${kept} of ${count(fits - lost + left)}`} ${rest} fit.`;
}

// Nothing makes the batches of a study's own program smaller; its configurations are of no model.
export function isSplit(fit: GetMemoryFitResponse): boolean {
  return (fit.models ?? []).some(({ name = "" }) => name !== "");
}

function fitsSentence(literal: Share, planned: Share, split: boolean): string {
  const { fits, total } = literal;
  const how = split ? " with the full batch" : "";
  if (fits === total) return total === 1 ? `The one configuration fits${how}.` : `All ${configurations(total)} fit${how}.`;
  const whole = fits === 0 ? `None of ${configurations(total)} ${literal.unknown === 0 ? "fits" : "is known to fit"}${how}` : `${count(fits)} of ${configurations(total)} (${percent(fits / total)}) ${fits === 1 ? "fits" : "fit"}${how}`;
  if (!split) return `${whole}.`;
  if (planned.fits <= fits) return `${whole}; smaller micro-batches do not change that.`;
  const smaller = planned.fits === total ? "all of them fit" : `${count(planned.fits)} (${percent(planned.fits / total)}) fit`;
  return `${whole}; with smaller micro-batches, ${smaller}.`;
}

function unknownSentence({ unknown, total }: Share): string[] {
  if (unknown === 0) return [];
  return [`The memory of ${unknown === total ? "all" : `${count(unknown)} of`} ${configurations(total)} is unknown on this GPU: the study would try them.`];
}

function modelSentences(fit: GetMemoryFitResponse, index: number, literal: Share, planned: Share): string[] {
  const known = (fit.models ?? []).filter((model) => model.known);
  if (known.length < 2) return [];
  const whole = known.filter((model) => int(model.planned_fits?.[index]) === int(model.configurations));
  const none = known.filter((model) => int(model.planned_fits?.[index]) === 0);
  const least = (model: (typeof known)[number]) => bytes(int(model.smallest_planned_bytes));
  const [first] = none;
  const sentences: string[] = [];
  if (none.length > 1) sentences.push(`These models never fit: ${none.map((model) => `${model.name} (requires at least ${least(model)})`).join(", ")}.`);
  else if (first !== undefined) sentences.push(`${first.name} never fits: it requires at least ${least(first)}.`);
  if (planned.fits < planned.total && whole.length > 0) {
    sentences.push(`All configurations of ${whole.map((model) => model.name).join(", ")} fit${literal.misfits > 0 ? " with smaller micro-batches" : ""}.`);
  }
  return sentences;
}

// What a reader with one GPU wants to know, in sentences.
export function statement(fit: GetMemoryFitResponse, index: number): string[] {
  const literal = shareOf(fit.gpus?.[index]?.literal);
  const planned = shareOf(fit.gpus?.[index]?.planned);
  if (literal.total === 0) return ["The memory of this search space is unknown."];
  if (literal.unknown === literal.total) return unknownSentence(literal);
  return [fitsSentence(literal, planned, isSplit(fit)), ...unknownSentence(literal), ...modelSentences(fit, index, literal, planned)];
}

// Before cuts: that none is needed, where smaller micro-batches make all fit; "" where that is not so.
export function noCutSentence(fit: GetMemoryFitResponse, index: number, policy: string): string {
  const literal = shareOf(fit.gpus?.[index]?.literal);
  const planned = shareOf(fit.gpus?.[index]?.planned);
  if (literal.misfits === 0 || planned.fits < planned.total || !isSplit(fit)) return "";
  const cost = "A training step then takes several forward and backward passes, which can be slower; how much slower is not known here.";
  return policy === "plan" || policy === ""
    ? `No cut is necessary: all ${configurations(planned.total)} run with smaller micro-batches at the same effective batch size. ${cost}`
    : `No cut would be necessary with the memory policy “plan”: all ${configurations(planned.total)} would run with smaller micro-batches at the same effective batch size. ${cost}`;
}

export interface Cut {
  goal: string;
  action: string;
  text: string; // the action, and what it gains
}

// Cuts for both ways to run a configuration.
export function cutsOf(fit: GetMemoryFitResponse, index: number): Cut[] {
  const gpu = fit.gpus?.[index];
  const split = isSplit(fit);
  const cuts: Cut[] = [];
  const add = (counts: MemoryFitCount | undefined, goal: string) => {
    if (counts?.cut !== undefined) cuts.push({ goal, action: cutAction(counts.cut), text: cutSentence(counts) });
  };
  add(gpu?.literal, split ? "to run with the full batch" : "");
  if (split) add(gpu?.planned, "to run with smaller micro-batches");
  return cuts;
}

export function gpuTitle(gpu: Gpu): string {
  return gpu.gpus === "" ? `a GPU of ${gpu.word}` : `a GPU of ${gpu.word} (${gpu.gpus})`;
}
