// What fits which GPU, and which parameter to cut, in sentences.
import type { GetMemoryFitResponse, MemoryCut, MemoryFitCount } from "../../api/messages";
import { int } from "../../api/values";
import { bytes, count, percent } from "../../format/format";
import type { Gpu } from "./capacities";

export interface Share {
  fits: number;
  misfits: number;
  share: number; // NaN: nothing was counted
}

export function shareOf(counts: MemoryFitCount | undefined): Share {
  const [fits, misfits] = [int(counts?.fits), int(counts?.does_not_fit)];
  return { fits, misfits, share: fits / (fits + misfits) };
}

// "Cut train.batch_size to at most 16", "Drop bert-large from model.name".
function cutAction({ parameter = "", description = "" }: MemoryCut): string {
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
  const fits = int(counts?.fits);
  const some = (amount: number, of: number) => (amount === of ? `all ${configurations(of)}` : `${count(amount)} of ${configurations(of)}`);
  const kept = count(fits - lost);
  const cost = lost === 0 ? "none that fit" : `${count(lost)} of ${count(fits)} that fit`;
  return `${cutAction(cut)}: removes ${some(removed, removed + left)} that do not fit, and ${cost}. Then ${left === 0 ? `all ${kept}` : `${kept} of ${count(fits - lost + left)}`} fit.`;
}

// Nothing makes the batches of a study's own program smaller; its configurations are of no model.
export function isSplit(fit: GetMemoryFitResponse): boolean {
  return (fit.models ?? []).some(({ name = "" }) => name !== "");
}

function fitsSentence(total: number, literal: Share, planned: Share, split: boolean): string {
  if (literal.misfits === 0) return `All ${configurations(total)} fit as they are written.`;
  const written =
    literal.fits === 0 ? `None of ${configurations(total)} fits as it is written` : `${count(literal.fits)} of ${configurations(total)} (${percent(literal.share)}) fit as they are written`;
  if (!split) return `${written}.`;
  if (planned.fits <= literal.fits) return `${written}; smaller micro-batches do not change that.`;
  const smaller = planned.misfits === 0 ? "all of them fit" : `${count(planned.fits)} (${percent(planned.share)}) fit`;
  return `${written}; with smaller micro-batches, ${smaller}.`;
}

// What a reader with one GPU wants to know, in sentences.
export function statement(fit: GetMemoryFitResponse, index: number): string[] {
  const gpu = fit.gpus?.[index];
  if (gpu === undefined) return [];
  const literal = shareOf(gpu.literal);
  const planned = shareOf(gpu.planned);
  const total = literal.fits + literal.misfits;
  if (total === 0) return ["Nothing is known of the memory of this search space."];
  const known = (fit.models ?? []).filter((model) => model.known);
  const whole = known.filter((model) => int(model.planned_fits?.[index]) === int(model.configurations));
  const none = known.filter((model) => int(model.planned_fits?.[index]) === 0);
  const usable = int(gpu.usable_bytes);
  // Where too few trials have run to learn from, the server counts as fitting what it would try.
  const tried = literal.fits > 0 && known.length > 0 && known.every((model) => int(model.smallest_bytes) > usable);
  if (tried) return [`Too few trials have run to say what fits: ${count(literal.fits)} of ${configurations(total)} would be tried, and ${count(literal.misfits)} are known not to fit.`];
  const sentences = [fitsSentence(total, literal, planned, isSplit(fit))];
  if (known.length > 1 && none.length > 0) {
    const [first] = none;
    sentences.push(
      none.length === 1 && first !== undefined
        ? `${first.name} never fits: it needs at least ${bytes(int(first.smallest_planned_bytes))}.`
        : `These models never fit: ${none.map((model) => `${model.name} (needs at least ${bytes(int(model.smallest_planned_bytes))})`).join(", ")}.`,
    );
  }
  if (known.length > 1 && planned.misfits > 0 && whole.length > 0) {
    sentences.push(`All configurations of ${whole.map((model) => model.name).join(", ")} fit${literal.misfits > 0 ? " with smaller micro-batches" : ""}.`);
  }
  return sentences;
}

// Cuts for both ways to run a configuration, each said once.
export function cutSentences(fit: GetMemoryFitResponse, index: number): { when: string; text: string }[] {
  const gpu = fit.gpus?.[index];
  const literal = cutSentence(gpu?.literal);
  const planned = cutSentence(gpu?.planned);
  const found: { when: string; text: string }[] = [];
  if (literal !== "") found.push({ when: "so that configurations fit as they are written", text: literal });
  if (planned !== "" && isSplit(fit)) found.push({ when: "so that they fit with smaller micro-batches", text: planned });
  return found;
}

export function gpuTitle(gpu: Gpu): string {
  return gpu.gpus === "" ? `a GPU of ${gpu.word}` : `a GPU of ${gpu.word} (${gpu.gpus})`;
}
