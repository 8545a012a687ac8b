// Rows of QueryTrials as the memory page takes them.
import type { PruneReason, QueryTrialsResponse, TrialState } from "../../api/messages";
import { letterOf, type Letter } from "../../parts/states";

// Of a column by row: numbers, or texts; undefined where the trial has none.
export type Cells = (number | string | undefined)[];

export function cellsOf(answer: QueryTrialsResponse, name: string): Cells {
  const column = answer.columns?.find((one) => one.name === name);
  const rows = answer.numbers?.length ?? 0;
  const cells: Cells = new Array(rows).fill(undefined);
  if (column === undefined) return cells;
  const missing = new Set(column.missing ?? []);
  for (let row = 0; row < rows; row += 1) {
    if (missing.has(row)) continue;
    cells[row] = column.texts === undefined ? Number(column.numbers?.[row] ?? 0) : column.texts[column.indexes?.[row] ?? 0];
  }
  return cells;
}

export function numbersOf(answer: QueryTrialsResponse, name: string): number[] {
  return cellsOf(answer, name).map((cell) => (typeof cell === "number" ? cell : 0));
}

// Needs the columns state, why and violation.
export function lettersOf(answer: QueryTrialsResponse): Letter[] {
  const why = cellsOf(answer, "why");
  const violation = numbersOf(answer, "violation");
  return cellsOf(answer, "state").map((state, row) =>
    letterOf(
      `TRIAL_STATE_${state ?? "QUEUED"}` as TrialState,
      why[row] === undefined ? undefined : (`PRUNE_REASON_${why[row]}` as PruneReason),
      violation[row] ?? 0,
    ),
  );
}
