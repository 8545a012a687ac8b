import { describe, expect, it } from "vitest";
import { cellAt, drawFrontier, frameOf, pictureHeight, toX, toY } from "../../../src/charts/frontier/draw";
import { fitOf, fitWords, gridOf, isSmooth, largestFit, neededWords, placeOf, type Grid, type GridGpu } from "../../../src/charts/frontier/grid";
import { legendLines, shade, inkOn } from "../../../src/charts/frontier/legend";
import { placeLabels } from "../../../src/charts/frontier/labels";
import { SvgPen } from "../../../src/charts/svg";

const G = 2 ** 30;

// Three batches by two lengths; a GPU that holds 8 GiB.
const answer = {
  x: "train.batch_size",
  y: "length",
  x_values: [{ int_value: "8" }, { int_value: "16" }, { int_value: "32" }],
  y_values: [{ int_value: "128" }, { int_value: "256" }],
  needed_bytes: [2, 4, 8, 4, 9, 16].map((gib) => String(gib * G)),
  gpus: [{ capacity_bytes: String(8.25 * G), usable_bytes: String(8 * G), micro_batches: [8, 16, 32, 8, 1, 0], verdicts: "FFFFPN" }],
};
const choices = (values: number[]) => ({ categorical_domain: { choices: values.map((value) => ({ int_value: String(value) })) } });
const parameters = [
  { name: "train.batch_size", domain: choices([8, 16, 32]) },
  { name: "length", domain: choices([128, 256]) },
];

function grid(change: Partial<Grid> = {}): Grid {
  return { ...gridOf(answer, parameters), ...change };
}

function gpuOf(one: Grid, change: Partial<GridGpu> = {}): GridGpu {
  const [gpu] = one.gpus;
  if (gpu === undefined) throw new Error("no GPU");
  return { ...gpu, ...change };
}

describe("cells", () => {
  it("are read for each y from the first, all x", () => {
    expect(grid().xs).toEqual([8, 16, 32]);
    expect(grid().needed[5]).toBe(16 * G);
  });
  it("have the verdict that the server gives, whatever they require", () => {
    const gpu = gpuOf(grid(), { verdicts: "UFPNF" });
    expect([0, 1, 2, 3, 4, 5].map((index) => fitOf(gpu, index))).toEqual(["unknown", "whole", "split", "none", "whole", "unknown"]);
    expect(fitWords(gpu, 0)).toBe("unknown, so it would be tried");
    expect(fitWords(gpuOf(grid()), 4)).toBe("fits with micro-batches of 1 sample");
    expect(neededWords(grid(), 0)).toBe("requires 2.00 GiB");
    expect(neededWords(grid({ needed: [0] }), 0)).toBe("has an unknown required memory");
  });
  it("give the largest value that fits", () => {
    const one = grid();
    const gpu = gpuOf(one);
    expect([0, 1, 2].map((column) => largestFit(one, gpu, column, false))).toEqual(["256", "128", "128"]);
    expect(largestFit(one, gpu, 1, true)).toBe("256");
    expect(largestFit(one, gpuOf(one, { verdicts: "NNNNNN" }), 0, true)).toBe("none");
    const half = gpuOf(one, { verdicts: "UFNUUU" });
    expect([0, 1, 2].map((column) => largestFit(one, half, column, true))).toEqual(["unknown", "128, others unknown", "unknown"]);
    const words = grid({ ys: ["adamw", "sgd"] });
    expect([0, 1].map((column) => largestFit(words, gpu, column, false))).toEqual(["all", "adamw"]);
  });
});

describe("isSmooth", () => {
  it.each([
    ["choices", choices([8, 16]), 2, false],
    ["a real number", { float_domain: { low: 0, high: 1 } }, 16, true],
    ["steps that are all shown", { float_domain: { low: 0, high: 0.3, step: 0.1 } }, 4, false],
    ["whole numbers that are all shown", { int_domain: { low: "1", high: "8" } }, 8, false],
    ["whole numbers with others between them", { int_domain: { low: "16", high: "512" } }, 16, true],
    ["nothing known", undefined, 3, false],
  ])("of %s", (_, domain, shown, smooth) => {
    expect(isSmooth(domain, shown)).toBe(smooth);
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

describe("names of lines", () => {
  const box = { left: 0, top: 20, width: 200, height: 100 };
  const one = { word: "12 GiB", width: 45, points: [[200, 60]] as [number, number][] };
  const cover = (left: number, top: number, width: number, height: number) => ({ left, top, width, height });
  it("end at the line's end, and not on one another", () => {
    const [first, second] = placeLabels([one, { ...one, word: "24 GiB" }], box, [], []);
    expect(first?.box).toEqual(cover(155, 52, 45, 16));
    expect(second?.box.top).not.toBe(52);
  });
  it("leave the line for marks, and for figures where there is a place without", () => {
    const mark = cover(170, 58, 14, 4);
    expect(placeLabels([one], box, [mark], [])[0]?.box.top).toBe(41);
    expect(placeLabels([one], box, [], [mark])[0]?.box.top).toBe(41);
    expect(placeLabels([one], box, [], [cover(0, 0, 200, 200)])[0]?.box.top).toBe(52);
  });
  it("stand above the chart, where their line ends there and every other place has figures", () => {
    const up = { ...one, points: [[100, 20]] as [number, number][] };
    expect(placeLabels([up], box, [], [cover(0, 0, 200, 200)])[0]?.box).toEqual(cover(77.5, 0, 45, 16));
  });
  it("stand above the chart where marks are everywhere, as many as there is room for", () => {
    const placed = placeLabels(new Array(8).fill(one), box, [cover(0, 20, 200, 100)], []);
    expect(placed.length).toBe(1);
    expect(placed[0]?.box.top).toBe(0);
    const wide = { ...one, points: [[10, 60]] as [number, number][] };
    expect(placeLabels(new Array(8).fill(wide), box, [cover(0, 20, 200, 100)], []).length).toBe(4);
  });
});

describe("the picture", () => {
  const picture = { grid: grid(), words: ["8.25 GiB"], focus: 0 };
  const drawn = (of: Grid, marks: { number: number; letter: "O"; x: number; y: number }[] = []) => {
    const pen = new SvgPen(600, 420);
    drawFrontier(pen, 600, 420, () => "#112233", { ...picture, grid: of, marks, ground: "light", at: 4 });
    return pen.text("Frontier");
  };
  it("finds the cell that a point is on", () => {
    const frame = frameOf(picture, 600, pictureHeight(picture, 600));
    expect(cellAt(grid(), frame, toX(frame, 2), toY(frame, 1))).toEqual({ column: 2, row: 1 });
    expect(cellAt(grid(), frame, toX(frame, 0), toY(frame, 0))).toEqual({ column: 0, row: 0 });
    expect(cellAt(grid(), frame, 2, 2)).toBeUndefined();
  });
  it("has the limit at one place of the colours, whatever the study needs", () => {
    expect([0.01, 0.5, 8, 32, 99].map((gib) => Number(shade(gib * G, 8 * G).toFixed(3)))).toEqual([0, 0, 0.667, 1, 1]);
    expect(shade(80 * G, 80 * G)).toBeCloseTo(2 / 3);
    expect(drawn(grid())).toContain("100 %");
    expect(drawn(grid())).toContain("8.00 GiB");
  });
  it("writes with ink that is read on a colour", () => {
    expect(inkOn("#440154")).toBe("#ffffff");
    expect(inkOn("#fde725")).toBe("#000000");
  });
  it("draws cells, the limit's name and marks", () => {
    const text = drawn(grid(), [{ number: 7, letter: "O", x: 2, y: 1 }]);
    expect(text).toContain("16.0 G");
    expect(text).toContain(">8.25 GiB</text>");
    expect(text).toContain("does not fit 8.25 GiB");
    expect(text).not.toContain("unknown");
    expect(text).not.toContain("NaN");
  });
  it("draws what is unknown as unknown, also where other GPUs know it", () => {
    const text = drawn(grid({ gpus: [gpuOf(grid(), { verdicts: "FFFFUU" })] }));
    expect(text).toContain("unknown for 8.25 GiB");
    expect(text).not.toContain("16.0 G");
    expect(text).not.toContain("does not fit");
  });
  it("breaks the legend into lines of the picture's width", () => {
    const entries = [
      { sign: "none", word: "does not fit 12 GiB" },
      { sign: "unknown", word: "unknown for 12 GiB" },
    ] as const;
    expect(legendLines(entries, 320)).toHaveLength(1);
    expect(legendLines(entries, 250)).toHaveLength(2);
  });
});
