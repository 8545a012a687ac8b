import { describe, expect, it } from "vitest";
import { labelPlace, limitLines, plannedLines } from "../../../src/charts/frontier/contour";
import { cellAt, drawFrontier, frameOf, inkOn, shade, toX, toY } from "../../../src/charts/frontier/draw";
import { fitOf, fitWords, gridOf, largestFit, neededWords, placeOf, type Grid } from "../../../src/charts/frontier/grid";
import { SvgPen } from "../../../src/charts/svg";

const G = 2 ** 30;

// Three batches by two lengths; a GPU that holds 8 GiB.
const answer = {
  x: "train.batch_size",
  y: "length",
  x_values: [{ int_value: "8" }, { int_value: "16" }, { int_value: "32" }],
  y_values: [{ int_value: "128" }, { int_value: "256" }],
  needed_bytes: [2, 4, 8, 4, 8, 16].map((gib) => String(gib * G)),
  gpus: [{ capacity_bytes: String(8.25 * G), usable_bytes: String(8 * G), micro_batches: [8, 16, 32, 8, 16, 16] }],
};

function grid(change: Partial<Grid> = {}): Grid {
  return { ...gridOf(answer), ...change };
}

function gpuOf(one: Grid) {
  const [gpu] = one.gpus;
  if (gpu === undefined) throw new Error("no GPU");
  return gpu;
}

describe("cells", () => {
  it("are read for each y from the first, all x", () => {
    expect(grid().xs).toEqual([8, 16, 32]);
    expect(grid().needed[5]).toBe(16 * G);
  });
  it("fit as written, with smaller micro-batches, or not", () => {
    const one = grid({ needed: [2, 0, 8, 4, 9, 16].map((gib) => gib * G), gpus: [{ capacity: 9 * G, usable: 8 * G, micro: [8, 0, 32, 8, 1, 0] }] });
    const gpu = gpuOf(one);
    expect([0, 1, 2, 3, 4, 5].map((index) => fitOf(one, gpu, index))).toEqual(["written", "unknown", "written", "written", "split", "none"]);
    expect(fitWords(one, gpu, 4)).toBe("fits with micro-batches of 1 row");
    expect(neededWords(one, 0)).toBe("requires 2.00 GiB");
    expect(neededWords(one, 1)).toBe("required memory is unknown");
  });
  it("fit as written where trials have shown it, whatever the margin", () => {
    const gpu = { capacity: 3 * G, usable: 3 * G, micro: [8, 16, 8, 8, 16, 32] };
    const one = grid({ x: "train.batch_size" });
    expect([1, 2].map((index) => fitOf(one, gpu, index))).toEqual(["written", "split"]);
    expect(fitOf(grid({ x: "rows", batch: 64 }), gpu, 1)).toBe("split");
    expect(fitOf(grid({ x: "rows" }), gpu, 1)).toBe("written");
  });
  it("give the largest value that fits", () => {
    const one = grid();
    const gpu = gpuOf(one);
    expect([0, 1, 2].map((column) => largestFit(one, gpu, column, false))).toEqual(["256", "256", "128"]);
    expect(largestFit(one, gpu, 2, true)).toBe("256");
    expect(largestFit(one, { ...gpu, usable: G, micro: [] }, 0, true)).toBeUndefined();
    const choices = grid({ ys: ["adamw", "sgd"] });
    expect([1, 2].map((column) => largestFit(choices, gpu, column, false))).toEqual(["all", "adamw"]);
  });
});

describe("placeOf", () => {
  it("interpolates between numbers and finds choices", () => {
    expect(placeOf([8, 16, 32], 8)).toBe(0);
    expect(placeOf([8, 16, 32], 24)).toBe(1.5);
    expect(placeOf([8, 16, 32], 32)).toBe(2);
    expect(placeOf([8, 16, 32], 33)).toBeUndefined();
    expect(placeOf(["a", true, null], "true")).toBe(1);
    expect(placeOf(["a"], "b")).toBeUndefined();
    expect(placeOf(["a"], undefined)).toBeUndefined();
  });
});

describe("lines", () => {
  it("cross where required memory equals the limit", () => {
    // Half way, on a logarithmic scale, between 4 and 8 GiB of the first row.
    const ends = limitLines(grid(), G * Math.sqrt(32)).flatMap(([x1, y1, x2, y2]) => [
      [x1, y1],
      [x2, y2],
    ]);
    expect(ends.some(([x = 0, y = 0]) => Math.abs(x - 1.5) < 1e-9 && y === 0)).toBe(true);
    expect(ends.every(([x = 0, y = 0]) => x >= -0.5 && x <= 2.5 && y >= -0.5 && y <= 1.5)).toBe(true);
  });
  it("are none where all fits, and keep off what is unknown", () => {
    expect(limitLines(grid(), 100 * G)).toEqual([]);
    expect(limitLines(grid({ needed: [0, 0, 0, 0, 0, 0] }), G)).toEqual([]);
  });
  it("follow the cells of choices", () => {
    const lines = limitLines(grid({ ys: ["a", "b"] }), 8 * G);
    expect(lines).toEqual([
      [1.5, 0.5, 2.5, 0.5],
      [1.5, 0.5, 1.5, 1.5],
    ]);
    expect(labelPlace(lines)).toEqual([2.5, 0.5]);
    expect(labelPlace([])).toBeUndefined();
  });
  it("part what no plan fits", () => {
    const one = grid({ gpus: [{ capacity: 4 * G, usable: 4 * G, micro: [8, 16, 8, 8, 4, 0] }] });
    expect(plannedLines(one, gpuOf(one))).toEqual([
      [1.5, 0.5, 2.5, 0.5],
      [1.5, 0.5, 1.5, 1.5],
    ]);
  });
});

describe("the picture", () => {
  it("finds the cell that a point is on", () => {
    const one = grid();
    const frame = frameOf(one, 600, 300);
    expect(cellAt(one, frame, toX(frame, 2), toY(frame, 1))).toEqual({ column: 2, row: 1 });
    expect(cellAt(one, frame, toX(frame, 0), toY(frame, 0))).toEqual({ column: 0, row: 0 });
    expect(cellAt(one, frame, 2, 2)).toBeUndefined();
  });
  it("shades by the logarithm, with ink that is read on it", () => {
    expect(shade(4, { low: 2, high: 8 })).toBeCloseTo(0.5);
    expect(shade(4, { low: 4, high: 4 })).toBe(0.5);
    expect(inkOn("#440154")).toBe("#ffffff");
    expect(inkOn("#fde725")).toBe("#000000");
  });
  it("draws cells, the limit's name and marks", () => {
    const pen = new SvgPen(600, 320);
    const colour = () => "#112233";
    drawFrontier(pen, 600, 320, colour, {
      grid: grid(),
      words: ["8.25 GiB"],
      focus: 0,
      marks: [{ number: 7, letter: "O", x: 2, y: 1 }],
      ground: "light",
      at: 4,
    });
    const text = pen.text("Frontier");
    expect(text).toContain("16.0 G");
    expect(text).toContain("8.25 GiB");
    expect(text).not.toContain("NaN");
  });
  it("draws nothing but axes where nothing is known", () => {
    const pen = new SvgPen(600, 320);
    drawFrontier(pen, 600, 320, () => "#112233", { grid: grid({ needed: [0, 0, 0, 0, 0, 0] }), words: [], focus: 0, marks: [], ground: "dark", at: undefined });
    expect(pen.text("Frontier")).not.toContain("GiB");
  });
});
