import { describe, expect, it } from "vitest";
import type { Trial } from "../../../src/api/messages";
import { alignedCurves, bestPlace, compareLines, differs, parameterTexts } from "../../../src/pages/trials/compare_lines";

const study = { objectives: [{ metric: "f1", direction: "DIRECTION_MAXIMIZE" as const }], space: { parameters: [{ name: "lr" }, { name: "opt" }] } };
const trial = (lr: number, f1: number): Trial => ({
  state: "TRIAL_STATE_COMPLETED",
  params: { lr: { double_value: lr }, opt: { string_value: "sgd" }, old: { int_value: "3" } },
  outcome: { completed: { metrics: { f1 } } },
  attempts: [{ memory: { live_peak_bytes: String(f1 * 2 ** 30) }, capacity_bytes: String(2 ** 34) }],
});

describe("compareLines", () => {
  const groups = compareLines([trial(0.1, 1), trial(0.2, 2)], study);
  const find = (name: string) => groups.flatMap(({ lines }) => lines).find((line) => line.name === name);

  it("tells what differs, and who is best", () => {
    expect(find("f1")).toEqual({ name: "f1", texts: ["1", "2"], best: 1 });
    expect(groups.flatMap(({ lines }) => lines.filter(differs)).map(({ name }) => name)).toEqual(["lr", "f1", "Live peak"]);
  });

  it("has parameters that the space has no more, and no empty lines", () => {
    expect(find("old")?.texts).toEqual(["3", "3"]);
    expect(find("Predicted")).toBeUndefined();
    expect(find("Limit")?.texts).toEqual(["16.0 GiB", "16.0 GiB"]);
  });
});

it("says nothing of what was not measured of imported trials", () => {
  const imported = { ...trial(0.1, 1), origin: "optuna:a#1", attempts: [{ worker: "imported" }], started: "2026-11-20T08:00:00Z", ended: "2026-11-20T08:00:00Z" };
  const lines = compareLines([imported, imported], study).flatMap((group) => group.lines);
  const names = lines.map(({ name }) => name);
  for (const name of ["Time", "Attempts", "Out-of-memory errors", "Limit"]) expect(names).not.toContain(name);
  expect(lines.find(({ name }) => name === "Worker")?.texts).toEqual(["imported", "imported"]);
});

it("numbers have as few digits as tell them apart", () => {
  const texts = (...values: number[]) => parameterTexts(values.map((value) => ({ double_value: value })));
  expect(texts(0.123456789, 0.2)).toEqual(["0.12346", "0.2"]);
  expect(texts(0.123456789, 0.12345678)).toEqual(["0.12345679", "0.12345678"]);
  expect(texts(0.5, 0.5)).toEqual(["0.5", "0.5"]);
  expect(parameterTexts([undefined, { string_value: "a" }])).toEqual(["", "a"]);
});

it("nobody is best where all are equal", () => {
  expect(bestPlace([1, 1, undefined], true)).toBeUndefined();
  expect(bestPlace([3, undefined, 2], true)).toBe(2);
  expect(bestPlace([3, Number.NaN, 2], false)).toBe(0);
});

it("curves share their steps", () => {
  expect(
    alignedCurves([
      { steps: ["1", "3"], values: [0.1, "NaN"] },
      { steps: ["2", "3"], values: [5, 6] },
      {},
    ]),
  ).toEqual([
    [1, 2, 3],
    [0.1, null, null],
    [null, 5, 6],
    [null, null, null],
  ]);
});
