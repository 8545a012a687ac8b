// Which trials a chart of values takes.
import { isFinal, type Column } from "./table";
import type { View } from "./view";

// As many marks as a chart shows without hiding each other altogether.
export const MOST_MARKS = 3000;

export interface Taken {
  rows: number[];
  of: number; // that could have been taken
}

// The shown trials that have ended with a value and have all of these columns; of too many, the best
// ones and evenly of the rest.
export function takeRows(view: View, needed: readonly Column[], most = MOST_MARKS): Taken {
  const { table, mask, objective } = view;
  const rows: number[] = [];
  for (let row = 0; row < table.rows; row += 1) {
    if (mask[row] !== 1 || !isFinal(table.letters[row]) || !Number.isFinite(objective.values[row])) continue;
    if (needed.every(({ values }) => Number.isFinite(values[row]))) rows.push(row);
  }
  return { rows: thinned(rows, objective, most), of: rows.length };
}

export function thinned(rows: number[], objective: Column, most: number): number[] {
  if (rows.length <= most) return rows;
  const sign = objective.minimized ? 1 : -1;
  const ranked = [...rows].sort((a, b) => sign * ((objective.values[a] ?? 0) - (objective.values[b] ?? 0)));
  const best = Math.floor(most / 4);
  const rest = ranked.slice(best);
  const every = rest.length / (most - best);
  const kept = ranked.slice(0, best);
  for (let at = 0; kept.length < most; at += every) kept.push(rest[Math.floor(at)] ?? 0);
  return kept.sort((a, b) => a - b);
}
