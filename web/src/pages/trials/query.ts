// What the table of trials shows, as the address has it.
import type { QueryTrialsRequest } from "../../api/messages";
import { count } from "../../format/format";
import { prunedText, type PrunedWhy } from "../../format/pruned";
import type { Letter } from "../../parts/states";

export interface TableState {
  where: string[];
  sort: string; // a column, "-" before it: largest first; "": by number
  columns: string[]; // empty: the default ones
  size: number;
  page: string; // "": the first, LAST, or a token of the server
  picked: number[];
}

export const LAST = "last";
export const SIZES = [50, 100, 200, 500, 1000];
const DEFAULT_SIZE = 100;
export const FEWEST_COMPARED = 2;
export const MOST_COMPARED = 20;

// Columns that the state of a row depends on, whether or not they are shown.
const ALWAYS = ["state", "why", "violation"];

function pruned(why: PrunedWhy, letter: Letter, hint: string) {
  return { word: prunedText(why), where: `why=${why}`, letter, hint };
}

// Conditions that a click sets, at most one of them at a time.
export const QUICK: { word: string; where: string; letter?: Letter; hint?: string }[] = [
  { word: "all", where: "" },
  { word: "completed", where: "state=completed", letter: "C" },
  { word: "pruned", where: "state=pruned", hint: "Ended early, and no failure: for any of the reasons that follow" },
  pruned("PRUNER", "P", "The pruner ended it at a step where others were better, or its time limit was used up"),
  pruned("OUT_OF_MEMORY", "O", "It ran out of GPU memory, and could not continue with smaller micro-batches"),
  pruned("HOST_OUT_OF_MEMORY", "O", "It ran out of the memory of its host"),
  pruned("PREDICTED_OUT_OF_MEMORY", "E", "It was not started: its predicted memory does not fit"),
  { word: "failed", where: "state=failed", letter: "F" },
  { word: "cancelled", where: "state=cancelled", letter: "X" },
  { word: "running", where: "state=running", letter: "R" },
  { word: "queued", where: "state=queued", letter: "Q" },
];

export function readPicked(text: string): number[] {
  const numbers = text
    .split(",")
    .filter((word) => /^\d{1,9}$/.test(word))
    .map(Number);
  return [...new Set(numbers)].slice(0, MOST_COMPARED);
}

export function readState(query: URLSearchParams): TableState {
  const size = Number(query.get("size") ?? DEFAULT_SIZE);
  return {
    where: query.getAll("where"),
    sort: query.get("sort") ?? "",
    columns: query.getAll("column"),
    size: SIZES.includes(size) ? size : DEFAULT_SIZE,
    page: query.get("page") ?? "",
    picked: readPicked(query.get("pick") ?? ""),
  };
}

// The words of the address that another number of rows is.
export function sizeWord(size: number): string {
  return size === DEFAULT_SIZE ? "" : String(size);
}

export function tableRequest(study: string, state: TableState, columns: readonly string[]): QueryTrialsRequest {
  return {
    study,
    where: state.where,
    sort: state.sort,
    columns: [...new Set([...columns, ...ALWAYS])],
    page_size: state.size,
    ...(state.page === LAST ? { from_end: true } : state.page === "" ? {} : { page_token: state.page }),
  };
}

// Ascending first, unless `largestFirst`; a second time: the other way round.
export function nextSort(sort: string, column: string, largestFirst: boolean): string {
  if (sort === column) return `-${column}`;
  if (sort === `-${column}`) return column;
  return largestFirst ? `-${column}` : column;
}

export function sortedHow(sort: string, column: string): "ascending" | "descending" | undefined {
  if (sort === column || (sort === "" && column === "number")) return "ascending";
  return sort === `-${column}` ? "descending" : undefined;
}

// Without the conditions of the quick filters, or with another one of them.
export function withQuick(where: readonly string[], quick: string): string[] {
  const others = where.filter((word) => !isQuick(word));
  return quick === "" ? others : [quick, ...others];
}

export function isQuick(word: string): boolean {
  return QUICK.some(({ where }) => where !== "" && where === word);
}

// "Rows 101 to 200 of 61,234"
export function positionText(position: number, rows: number, matching: number): string {
  if (rows === 0) return "No rows";
  return `Rows ${count(position + 1)} to ${count(position + rows)} of ${count(matching)}`;
}

// What an error of a query is about: where it is shown.
export function errorPlace(message: string): "where" | "page" | "table" {
  if (message.startsWith("where")) return "where";
  return message.startsWith("page_token") ? "page" : "table";
}

// After a trial was chosen for the comparison, or no longer.
export function withPicked(picked: readonly number[], trial: number, on: boolean): number[] {
  const others = picked.filter((one) => one !== trial);
  return on ? [...others, trial].slice(0, MOST_COMPARED) : others;
}
