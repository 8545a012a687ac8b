// Lines that part what fits a limit from what does not, in places of cells: cell (0, 0) has its
// middle at (0, 0).
import { fitOf, indexOf, isNumeric, type Grid, type GridGpu } from "./grid";

export type Segment = [x1: number, y1: number, x2: number, y2: number];

// Where required memory equals the limit. Between numbers it is interpolated, as required memory
// grows evenly with them; between choices the line follows the cells.
export function limitLines(grid: Grid, usable: number): Segment[] {
  if (!isNumeric(grid.xs) || !isNumeric(grid.ys)) {
    return stepLines(grid, (index) => {
      const needed = grid.needed[index] ?? 0;
      return needed === 0 ? undefined : needed <= usable;
    });
  }
  const columns = grid.xs.length;
  const rows = grid.ys.length;
  const lines: Segment[] = [];
  for (let row = -1; row < rows; row += 1) {
    for (let column = -1; column < columns; column += 1) lines.push(...squareLines(grid, usable, column, row));
  }
  return lines;
}

// Cells reach half a place beyond the middles of the first and the last one; there their values go on.
function place(index: number, length: number): number {
  return Math.min(length - 0.5, Math.max(-0.5, index));
}

function squareLines(grid: Grid, usable: number, column: number, row: number): Segment[] {
  const columns = grid.xs.length;
  const rows = grid.ys.length;
  const corners = [
    [column, row],
    [column + 1, row],
    [column + 1, row + 1],
    [column, row + 1],
  ].map(([x = 0, y = 0]) => {
    const index = indexOf(grid, Math.min(columns - 1, Math.max(0, x)), Math.min(rows - 1, Math.max(0, y)));
    return { x: place(x, columns), y: place(y, rows), over: Math.log((grid.needed[index] ?? 0) / usable) };
  });
  if (corners.some(({ over }) => !Number.isFinite(over))) return [];
  const crossings: [number, number][] = [];
  corners.forEach((from, side) => {
    const to = corners[(side + 1) % 4] ?? from;
    if (from.over > 0 === to.over > 0) return;
    const at = from.over / (from.over - to.over);
    crossings.push([from.x + at * (to.x - from.x), from.y + at * (to.y - from.y)]);
  });
  const lines: Segment[] = [];
  for (let index = 0; index + 1 < crossings.length; index += 2) {
    const [[x1, y1] = [0, 0], [x2, y2] = [0, 0]] = [crossings[index], crossings[index + 1]];
    lines.push([x1, y1, x2, y2]);
  }
  return lines;
}

// Between what fits a GPU in some plan and what fits in none; nothing where no cell is run with
// smaller micro-batches, as under the policy "strict".
export function plannedLines(grid: Grid, gpu: GridGpu): Segment[] {
  if (!grid.needed.some((_, index) => fitOf(grid, gpu, index) === "split")) return [];
  return stepLines(grid, (index) => {
    const fit = fitOf(grid, gpu, index);
    return fit === "unknown" ? undefined : fit !== "none";
  });
}

function stepLines(grid: Grid, inside: (index: number) => boolean | undefined): Segment[] {
  const lines: Segment[] = [];
  const differ = (a: number, b: number) => {
    const [one, other] = [inside(a), inside(b)];
    return one !== undefined && other !== undefined && one !== other;
  };
  for (let row = 0; row < grid.ys.length; row += 1) {
    for (let column = 0; column < grid.xs.length; column += 1) {
      const here = indexOf(grid, column, row);
      if (column + 1 < grid.xs.length && differ(here, indexOf(grid, column + 1, row))) lines.push([column + 0.5, row - 0.5, column + 0.5, row + 0.5]);
      if (row + 1 < grid.ys.length && differ(here, indexOf(grid, column, row + 1))) lines.push([column - 0.5, row + 0.5, column + 0.5, row + 0.5]);
    }
  }
  return lines;
}

// Where a line's name is written: its end that is furthest to the right, of equal ones the highest.
export function labelPlace(lines: readonly Segment[]): [number, number] | undefined {
  let best: [number, number] | undefined;
  for (const [x1, y1, x2, y2] of lines) {
    for (const end of [[x1, y1], [x2, y2]] as [number, number][]) {
      if (best === undefined || end[0] > best[0] || (end[0] === best[0] && end[1] > best[1])) best = end;
    }
  }
  return best;
}
