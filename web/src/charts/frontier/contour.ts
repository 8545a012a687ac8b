// Lines that part what fits a limit from what does not, in places of cells: cell (0, 0) has its
// middle at (0, 0). The middle of each cell lies on the side of its verdict.
import { fitOf, indexOf, type Grid, type GridGpu } from "./grid";

export type Segment = [x1: number, y1: number, x2: number, y2: number];

// How far a cell is beyond a limit: at most 0 inside, undefined where it is unknown.
type Over = (index: number) => number | undefined;

// On a middle itself a line would part nothing, and of infinite distances none is interpolated.
const [LEAST, MOST] = [1e-3, 9];

// Between what fits with the full batch and what does not. Along parameters with values between
// those of the cells it lies where required memory equals the limit, which is interpolated; along
// choices it follows the borders of cells.
export function limitLines(grid: Grid, gpu: GridGpu): Segment[] {
  const over: Over = (index) => {
    const fit = fitOf(gpu, index);
    if (fit === "unknown") return undefined;
    const beyond = Math.log((grid.needed[index] ?? 0) / gpu.usable);
    return fit === "whole" ? Math.max(-MOST, Math.min(-LEAST, beyond)) : Math.min(MOST, Math.max(LEAST, beyond));
  };
  return grid.smooth.x && grid.smooth.y ? contourLines(grid, over) : stepLines(grid, over);
}

// Between what smaller micro-batches make fit and what nothing makes fit.
export function plannedLines(grid: Grid, gpu: GridGpu): Segment[] {
  const sides: Partial<Record<string, number>> = { split: -1, none: 1 };
  return stepLines(grid, (index) => sides[fitOf(gpu, index)]);
}

// Cells reach half a place beyond the middles of the first and the last one; there their values go on.
function place(index: number, length: number): number {
  return Math.min(length - 0.5, Math.max(-0.5, index));
}

function contourLines(grid: Grid, over: Over): Segment[] {
  const lines: Segment[] = [];
  for (let row = -1; row < grid.ys.length; row += 1) {
    for (let column = -1; column < grid.xs.length; column += 1) lines.push(...squareLines(grid, over, column, row));
  }
  return lines;
}

function squareLines(grid: Grid, over: Over, column: number, row: number): Segment[] {
  const columns = grid.xs.length;
  const rows = grid.ys.length;
  const corners: { x: number; y: number; over: number }[] = [];
  for (const [x = 0, y = 0] of [
    [column, row],
    [column + 1, row],
    [column + 1, row + 1],
    [column, row + 1],
  ]) {
    const beyond = over(indexOf(grid, Math.min(columns - 1, Math.max(0, x)), Math.min(rows - 1, Math.max(0, y))));
    if (beyond === undefined) return [];
    corners.push({ x: place(x, columns), y: place(y, rows), over: beyond });
  }
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

// Part of a lane of cells, from one place of the other axis to another.
interface Stretch {
  from: number;
  to: number;
  inside: boolean | undefined;
}

// Lanes of cells run along the axis that is smooth, else upwards; lines cross them at the borders of
// cells, or between their middles where the axis is smooth.
function stepLines(grid: Grid, over: Over): Segment[] {
  const across = grid.smooth.x && !grid.smooth.y;
  const lanes = across ? grid.ys.length : grid.xs.length;
  const stretches = Array.from({ length: lanes }, (_, lane) => laneStretches(grid, over, across, lane));
  const lines: Segment[] = [];
  const draw = (lane1: number, along1: number, lane2: number, along2: number) => lines.push(across ? [along1, lane1, along2, lane2] : [lane1, along1, lane2, along2]);
  const differ = (one: Stretch, other: Stretch) => one.inside !== undefined && other.inside !== undefined && one.inside !== other.inside;
  stretches.forEach((lane, at) => {
    lane.forEach((one, index) => {
      const next = lane[index + 1];
      if (next !== undefined && differ(one, next)) draw(at - 0.5, one.to, at + 0.5, one.to);
      for (const other of stretches[at + 1] ?? []) {
        const [from, to] = [Math.max(one.from, other.from), Math.min(one.to, other.to)];
        if (from < to && differ(one, other)) draw(at + 0.5, from, at + 0.5, to);
      }
    });
  });
  return lines;
}

function laneStretches(grid: Grid, over: Over, across: boolean, lane: number): Stretch[] {
  const length = across ? grid.xs.length : grid.ys.length;
  const smooth = across ? grid.smooth.x : grid.smooth.y;
  const beyond = Array.from({ length }, (_, at) => over(across ? indexOf(grid, at, lane) : indexOf(grid, lane, at)));
  let from = -0.5;
  return beyond.map((here, at) => {
    const next = beyond[at + 1];
    const crossed = smooth && here !== undefined && next !== undefined && here > 0 !== next > 0;
    const stretch = { from, to: at + (crossed ? here / (here - next) : 0.5), inside: here === undefined ? undefined : here <= 0 };
    from = stretch.to;
    return stretch;
  });
}
