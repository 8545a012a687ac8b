import { describe, expect, it } from "vitest";
import { limitLines, plannedLines, type Segment } from "../../../src/charts/frontier/contour";
import { indexOf, type Grid, type GridGpu } from "../../../src/charts/frontier/grid";

// The same numbers in each run.
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

function gridOf(columns: number, rows: number, smooth: Grid["smooth"], needed: number[], verdicts: string): { grid: Grid; gpu: GridGpu } {
  const count = (length: number) => Array.from({ length }, (_, index) => index);
  const gpu = { capacity: 9, usable: 8, micro: [], verdicts };
  return { gpu, grid: { x: "x", y: "y", xs: count(columns), ys: count(rows), smooth, needed, gpus: [gpu] } };
}

// As the server's answers are: what is needed is no more than usable where a cell fits, and more
// where it does not; of some cells nothing is known.
function randomGrid(next: () => number, smooth: Grid["smooth"]) {
  const [columns, rows] = [1 + Math.floor(next() * 6), 1 + Math.floor(next() * 6)];
  const needed: number[] = [];
  let verdicts = "";
  for (let index = 0; index < columns * rows; index += 1) {
    const need = next() < 0.1 ? 8 : 0.1 + next() * 16;
    const verdict = next() < 0.1 ? "U" : need <= 8 ? "F" : next() < 0.5 ? "P" : "N";
    verdicts += verdict;
    needed.push(verdict === "U" && next() < 0.5 ? 0 : need);
  }
  return gridOf(columns, rows, smooth, needed, verdicts);
}

// How often lines cross the way from the middle of a cell to that of its neighbour.
function crossings(lines: readonly Segment[], x: number, y: number, right: boolean): number {
  const turned = lines.map(([x1, y1, x2, y2]): Segment => (right ? [x1, y1, x2, y2] : [y1, x1, y2, x2]));
  const [from, level] = right ? [x, y] : [y, x];
  return turned.filter(([x1, y1, x2, y2]) => {
    // A contour's parts meet on the way itself; half of them reach it from above.
    if (y1 > level === y2 > level) return false;
    const at = x1 + ((level - y1) / (y2 - y1)) * (x2 - x1);
    return at > from && at < from + 1;
  }).length;
}

function expectSides(grid: Grid, lines: readonly Segment[], sideOf: (index: number) => string | undefined): number {
  let checked = 0;
  for (let row = 0; row < grid.ys.length; row += 1) {
    for (let column = 0; column < grid.xs.length; column += 1) {
      for (const [dx, dy] of [[1, 0], [0, 1]] as const) {
        if (column + dx >= grid.xs.length || row + dy >= grid.ys.length) continue;
        const [here, there] = [sideOf(indexOf(grid, column, row)), sideOf(indexOf(grid, column + dx, row + dy))];
        const parted = here !== undefined && there !== undefined && here !== there;
        const smooth = grid.smooth.x && grid.smooth.y;
        // Where a neighbour of the way is unknown, a contour ends.
        if (smooth && around(grid, column, row, dx).some((index) => sideOf(index) === undefined)) continue;
        expect(crossings(lines, column, row, dx === 1) % 2, `${column}, ${row}, ${dx}`).toBe(parted ? 1 : 0);
        checked += 1;
      }
    }
  }
  return checked;
}

// The cells of the way to a neighbour, and of both sides of it.
function around(grid: Grid, column: number, row: number, dx: number): number[] {
  const found: number[] = [];
  for (let across = -1; across <= 1; across += 1) {
    for (let along = 0; along <= 1; along += 1) {
      const x = Math.min(grid.xs.length - 1, Math.max(0, column + (dx === 1 ? along : across)));
      const y = Math.min(grid.ys.length - 1, Math.max(0, row + (dx === 1 ? across : along)));
      found.push(indexOf(grid, x, y));
    }
  }
  return found;
}

describe("the limit's line", () => {
  it.each([
    ["choices", { x: false, y: false }],
    ["a choice across and a number upwards", { x: false, y: true }],
    ["a number across and a choice upwards", { x: true, y: false }],
    ["numbers", { x: true, y: true }],
  ])("parts each cell from its neighbours as their verdicts say: %s", (_, smooth) => {
    const next = random(47);
    let checked = 0;
    for (let round = 0; round < 300; round += 1) {
      const { grid, gpu } = randomGrid(next, smooth);
      const fits = (index: number) => (gpu.verdicts[index] === "U" ? undefined : String(gpu.verdicts[index] === "F"));
      checked += expectSides(grid, limitLines(grid, gpu), fits);
      const planned = (index: number) => ("PN".includes(gpu.verdicts[index] ?? "") ? gpu.verdicts[index] : undefined);
      if (!(smooth.x && smooth.y)) expectSides(grid, plannedLines(grid, gpu), planned);
    }
    expect(checked).toBeGreaterThan(2000);
  });
  it("stays on the borders of cells along choices", () => {
    const next = random(3);
    for (let round = 0; round < 50; round += 1) {
      const { grid, gpu } = randomGrid(next, { x: false, y: true });
      for (const [x1, , x2] of limitLines(grid, gpu)) expect([(x1 + 0.5) % 1, (x2 + 0.5) % 1]).toEqual([0, 0]);
      for (const line of limitLines({ ...grid, smooth: { x: false, y: false } }, gpu)) expect(line.map((at) => (at + 0.5) % 1)).toEqual([0, 0, 0, 0]);
    }
  });
  it("follows the cells of choices", () => {
    const { grid, gpu } = gridOf(3, 2, { x: false, y: false }, [2, 4, 8, 4, 8, 16], "FFFFFN");
    expect(limitLines(grid, gpu)).toEqual([
      [1.5, 0.5, 1.5, 1.5],
      [1.5, 0.5, 2.5, 0.5],
    ]);
  });
  it("lies between numbers where required memory equals the limit", () => {
    // Half way, on a logarithmic scale, between 4 and 16 of the first row.
    const { grid, gpu } = gridOf(3, 2, { x: true, y: true }, [1, 4, 16, 1, 4, 16], "FFNFFN");
    const ends = limitLines(grid, gpu).flatMap(([x1, y1, x2, y2]) => [[x1, y1], [x2, y2]]);
    expect(ends.every(([x = 0]) => Math.abs(x - 1.5) < 1e-9)).toBe(true);
    expect([Math.min(...ends.map(([, y = 0]) => y)), Math.max(...ends.map(([, y = 0]) => y))]).toEqual([-0.5, 1.5]);
  });
  it("is none where all fits or nothing is known", () => {
    for (const smooth of [true, false]) {
      for (const verdicts of ["FFFF", "UUUU", "UFUF"]) {
        const { grid, gpu } = gridOf(2, 2, { x: smooth, y: smooth }, [0, 1, 0, 1], verdicts);
        expect(limitLines(grid, gpu)).toEqual([]);
      }
    }
  });
  it("parts what no plan fits from what smaller micro-batches make fit alone", () => {
    const { grid, gpu } = gridOf(3, 2, { x: false, y: false }, [4, 8, 16, 9, 9, 32], "FFPPPN");
    expect(plannedLines(grid, gpu)).toEqual([
      [1.5, 0.5, 1.5, 1.5],
      [1.5, 0.5, 2.5, 0.5],
    ]);
  });
});
