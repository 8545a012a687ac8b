// Which trials are shown: conditions as `hpo trial list --where` has them, and brushes of axes that
// are such conditions.
import type { Column, Table } from "./table";

export interface Condition {
  name: string;
  comparison: "=" | "!=" | "<" | "<=" | ">" | ">=";
  value: string;
}

const WORD = /^([^!<>=]+)(!=|<=|>=|=|<|>)(.*)$/s;

export function readCondition(word: string): Condition | undefined {
  const match = WORD.exec(word);
  if (match === null) return undefined;
  const [, name = "", comparison = "=", value = ""] = match;
  return { name: name.trim(), comparison: comparison as Condition["comparison"], value: value.trim() };
}

// What a brush or conditions leave of a column: values from `low` to `high`; of choices, those whose
// place is in `chosen`.
export interface Range {
  low: number;
  high: number;
  lowOpen?: boolean; // `low` itself is not in it
  highOpen?: boolean;
  chosen?: ReadonlySet<number>;
}

export type Ranges = ReadonlyMap<string, Range>;

export interface Filter {
  ranges: Ranges;
  // Conditions on what this page does not have as columns: the server's to decide.
  others: string[];
}

const whole: Range = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };

export function readFilter(words: readonly string[], columns: readonly Column[]): Filter {
  const ranges = new Map<string, Range>();
  const others: string[] = [];
  for (const word of words) {
    const condition = readCondition(word);
    const column = columns.find(({ name }) => name === condition?.name);
    const before = column && (ranges.get(column.name) ?? whole);
    const range = condition && column && before && (column.choices ? narrowChoices(before, condition, column.choices) : narrow(before, condition));
    if (range === undefined || column === undefined) others.push(word);
    else ranges.set(column.name, range);
  }
  return { ranges, others };
}

function narrow(before: Range, { comparison, value }: Condition): Range | undefined {
  const number = value === "" ? Number.NaN : Number(value);
  if (Number.isNaN(number)) return undefined;
  const range = { ...before };
  const open = comparison === "<" || comparison === ">";
  if (comparison === "!=") return undefined;
  if (comparison !== "<" && comparison !== "<=" && number >= range.low) Object.assign(range, { low: number, lowOpen: open });
  if (comparison !== ">" && comparison !== ">=" && number <= range.high) Object.assign(range, { high: number, highOpen: open });
  return range;
}

function narrowChoices(before: Range, { comparison, value }: Condition, choices: readonly string[]): Range | undefined {
  const place = choices.indexOf(value);
  if (place < 0 || (comparison !== "=" && comparison !== "!=")) return undefined;
  const kept = before.chosen ?? new Set(choices.keys());
  const chosen = new Set([...kept].filter((one) => (one === place) === (comparison === "=")));
  return { ...whole, chosen };
}

// The conditions that say what a range does; a column's whole range has none.
export function writeRange({ name, choices }: Column, range: Range): string[] {
  if (choices !== undefined) {
    const chosen = range.chosen ?? new Set(choices.keys());
    const [only] = chosen;
    if (chosen.size === 1 && only !== undefined) return [`${name}=${choices[only]}`];
    return choices.filter((_, place) => !chosen.has(place)).map((choice) => `${name}!=${choice}`);
  }
  const words: string[] = [];
  if (range.low === range.high) return [`${name}=${range.low}`];
  if (Number.isFinite(range.low)) words.push(`${name}>${range.lowOpen ? "" : "="}${range.low}`);
  if (Number.isFinite(range.high)) words.push(`${name}<${range.highOpen ? "" : "="}${range.high}`);
  return words;
}

export function writeFilter({ ranges, others }: Filter, columns: readonly Column[]): string[] {
  return [...others, ...columns.flatMap((column) => {
    const range = ranges.get(column.name);
    return range === undefined ? [] : writeRange(column, range);
  })];
}

// Marks the trials that all ranges hold for with 1, and returns how many they are. As on the server,
// no range holds for a trial that has no value.
export function markShown(table: Table, columns: readonly Column[], ranges: Ranges, mask: Uint8Array): number {
  mask.fill(1);
  for (const column of columns) {
    const range = ranges.get(column.name);
    if (range === undefined) continue;
    const { low, high, lowOpen = false, highOpen = false, chosen } = range;
    const { values } = column;
    for (let row = 0; row < table.rows; row += 1) {
      const value = values[row] ?? Number.NaN;
      const within = chosen === undefined ? (lowOpen ? value > low : value >= low) && (highOpen ? value < high : value <= high) : chosen.has(value);
      if (!within) mask[row] = 0;
    }
  }
  let shown = 0;
  for (let row = 0; row < table.rows; row += 1) shown += mask[row] ?? 0;
  return shown;
}

// Four digits, since a brush is no more exact: a condition stays short, and says what is done.
export function brushed(value: number): number {
  return Number(value.toPrecision(4));
}
