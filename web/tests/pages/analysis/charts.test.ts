import { describe, expect, it } from "vitest";
import { chosenCharts } from "../../../src/pages/analysis/analysis";
import { dominates, hypervolume, hypervolumeHistory, paretoFront } from "../../../src/pages/analysis/front";
import { makeGrid } from "../../../src/pages/analysis/grid";
import { importanceRows } from "../../../src/pages/analysis/importance";
import { nextPace } from "../../../src/pages/analysis/painter";
import { quantile } from "../../../src/pages/analysis/edf";
import { ranks } from "../../../src/pages/analysis/pairs";
import { bucketsOf, COLOURS, drawLines, extentOf, layOut, makeLines, rangeOf, shownLines } from "../../../src/pages/analysis/parallel_lines";
import { thinned } from "../../../src/pages/analysis/rows";
import type { Column, Table } from "../../../src/pages/analysis/table";
import { readTimeline, zoomed } from "../../../src/pages/analysis/timeline";
import { markShown } from "../../../src/pages/analysis/filter";

const column = (name: string, values: Iterable<number>, more: Partial<Column> = {}): Column => ({
  name,
  values: Float64Array.from(values),
  choices: undefined,
  log: false,
  whole: false,
  objective: false,
  minimized: true,
  ...more,
});

describe("several objectives", () => {
  it("finds the front, equal points included", () => {
    expect(dominates([1, 1], [1, 2])).toBe(true);
    expect(dominates([1, 1], [1, 1])).toBe(false);
    expect(paretoFront([[3, 1], [1, 3], [2, 2], [2, 2], [3, 3]])).toEqual([0, 1, 2, 3]);
  });

  it("measures the dominated volume", () => {
    expect(hypervolume([[1, 3], [2, 2], [3, 1]], [4, 4])).toBe(6);
    expect(hypervolume([[5, 5]], [4, 4])).toBe(0);
    expect(hypervolume([[1, 1, 1]], [2, 3, 4])).toBe(6);
    expect(hypervolume([[0, 0, 1], [1, 1, 0]], [2, 2, 2])).toBe(5);
  });

  it("never shrinks as trials end", () => {
    const { shares } = hypervolumeHistory([[3, 3], [4, 4], [1, 2], [2, 1], [1, 1]]);
    expect([...shares]).toEqual([...shares].sort((a, b) => a - b));
    expect(shares.at(-1)).toBeCloseTo(1);
  });
});

describe("parallel coordinates", () => {
  const rows = 10_000;
  const value = Array.from({ length: rows }, (_, row) => (row * 7919) % rows);
  const columns = [
    column("x", value.map((one) => one / rows)),
    column("n", value.map((one) => one % 10), { whole: true }),
    column("choice", value.map((one) => one % 3), { choices: ["a", "b", "c"] }),
    column("loss", value, { objective: true }),
  ];
  const [x, n, choice, loss] = columns as [Column, Column, Column, Column];
  const table: Table = { rows, numbers: Int32Array.from(value.keys()), letters: value.map(() => "C" as const), parameters: [x, n, choice], objectives: [loss], total: rows, matching: rows };
  const lines = makeLines(table, columns, loss);

  it("colours by rank and mixes all lines once", () => {
    const buckets = bucketsOf(loss, 0, rows);
    expect(Math.max(...buckets)).toBe(COLOURS - 1);
    expect(new Set(lines.order).size).toBe(rows);
    expect(bucketsOf(column("none", [Number.NaN]), 0, 1)[0]).toBe(COLOURS);
  });

  it("makes ranges of brushes, and finds them again", () => {
    const [, whole, choices] = lines.axes;
    if (whole === undefined || choices === undefined) throw new Error("no axes");
    expect(rangeOf(whole, 0, 1)).toBeUndefined();
    expect(rangeOf(whole, 0.3, 0.6)).toEqual({ low: 3, high: 5 });
    expect(rangeOf(whole, 0.34, 0.36)).toEqual({ low: 3, high: 3 });
    expect(rangeOf(choices, 0, 0.6)?.chosen).toEqual(new Set([0, 1]));
    expect(rangeOf(choices, 0.4, 0.41)?.chosen).toEqual(new Set([1]));
    expect(extentOf(choices, rangeOf(choices, 0.4, 0.41))[0]).toBeCloseTo(1 / 3);
    expect(extentOf(whole, undefined)).toEqual([0, 1]);
  });

  // A frame has 16 ms. The rest of it is the browser's: bench/page has that.
  it("filters 10,000 trials and lays out their lines within a frame", () => {
    const mask = new Uint8Array(rows);
    const layout = layOut(lines.axes.length, 1200, 400);
    const pen = { strokeStyle: "", beginPath() {}, moveTo() {}, lineTo() {}, stroke() {} };
    const times: number[] = [];
    for (let turn = 0; turn < 30; turn += 1) {
      const start = performance.now();
      markShown(table, columns, new Map([["x", { low: turn / 60, high: 0.9 }], ["loss", { low: 0, high: 9000 }]]), mask);
      const shown = shownLines(lines, mask);
      drawLines(pen as never, lines, layout, shown, 0, Math.min(shown.length, 1000), Array.from({ length: COLOURS }, () => "#000"));
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    expect(times[15]).toBeLessThan(16);
  });

  it("draws fewer lines after late frames and more after timely ones", () => {
    expect(nextPace(1000, 1000, 18)).toBe(500);
    expect(nextPace(1000, 300, 12)).toBe(750);
    expect(nextPace(1000, 1000, 6)).toBeGreaterThan(1000);
    expect(nextPace(1000, 300, 6)).toBe(1000);
  });
});

describe("the other charts", () => {
  it("puts both methods of importance together", () => {
    const rows = importanceRows([{ parameters: [{ parameter: "a", share: 0.2 }, { parameter: "b", share: 0.1, low: 0.05, high: 0.2 }] }, { parameters: [{ parameter: "b", share: 0.7 }] }]);
    expect(rows.map(({ parameter }) => parameter)).toEqual(["b", "a"]);
    expect(rows[0]?.shares[0]).toEqual({ share: 0.1, low: 0.05, high: 0.2 });
    expect(rows[1]?.shares[1]).toBeUndefined();
  });

  it("says nothing of places where no trial is near", () => {
    const grid = makeGrid(Float64Array.of(0.05, 0.1), Float64Array.of(0.05, 0.1), Float64Array.of(1, 3), 20);
    expect(grid.cells[0]).toBeGreaterThanOrEqual(1);
    expect(grid.cells[19 * 20 + 19]).toBeNaN();
    expect(grid.high).toBeLessThanOrEqual(3 + 1e-9);
  });

  it("ranks and thins with the best kept", () => {
    const loss = column("loss", Array.from({ length: 100 }, (_, index) => 100 - index));
    expect([...ranks(loss, [0, 99, 50])]).toEqual([1, 0, 0.5]);
    const kept = thinned([...loss.values.keys()], loss, 20);
    expect(kept).toHaveLength(20);
    expect(kept).toContain(99);
    expect(quantile(Float64Array.of(1, 2, 3, 4), 0.5)).toBe(2);
  });

  it("lets running attempts go on, and zooms within the whole", () => {
    const line = readTimeline({ workers: ["w"], worker_indexes: [0, 0], numbers: [1, 2], attempts: [1, 1], started: [10, 20], ended: [20, 0], uses: "UR" }, 50);
    expect(line.bars[1]).toMatchObject({ from: 20, to: 50, use: "R" });
    expect([line.from, line.to]).toEqual([10, 50]);
    expect(zoomed([0, 1], 0.5, 0.5)).toEqual([0.25, 0.75]);
    expect(zoomed([0.25, 0.75], 0.5, 4)).toEqual([0, 1]);
  });

  it("chooses charts by the address", () => {
    const known = ["parallel", "importance", "edf"];
    expect(chosenCharts("", known)).toEqual(["parallel", "importance"]);
    expect(chosenCharts("edf.other", known)).toEqual(["edf"]);
    expect(chosenCharts("none", known)).toEqual([]);
  });
});
