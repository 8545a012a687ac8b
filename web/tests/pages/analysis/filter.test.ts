import { describe, expect, it } from "vitest";
import { brushed, markShown, readFilter, writeFilter, writeRange } from "../../../src/pages/analysis/filter";
import type { Column, Table } from "../../../src/pages/analysis/table";

const column = (name: string, values: number[], choices?: string[]): Column => ({
  name,
  values: Float64Array.from(values),
  choices,
  log: false,
  whole: false,
  objective: false,
  minimized: false,
});
const lr = column("lr", [0.1, 0.01, 0.001, Number.NaN]);
const model = column("model", [0, 1, 2, 1], ["a", "b", "c"]);
const columns = [lr, model];
const table: Table = { rows: 4, numbers: Int32Array.from([0, 1, 2, 3]), letters: ["C", "C", "C", "C"], parameters: columns, objectives: [], total: 4, matching: 4 };

const shown = (...words: string[]) => {
  const mask = new Uint8Array(4);
  const count = markShown(table, columns, readFilter(words, columns).ranges, mask);
  return [count, ...mask];
};

describe("conditions as brushes", () => {
  it("reads what it writes", () => {
    for (const words of [["lr>=0.01", "lr<=0.1"], ["lr>0.01"], ["lr=0.01"], ["model=b"], ["model!=a"], ["state=completed", "lr<1"]]) {
      expect(writeFilter(readFilter(words, columns), columns)).toEqual(words);
    }
  });

  it("leaves to the server what it does not know", () => {
    for (const word of ["state=completed", "time<5", "lr!=3", "lr=x", "model<b", "model=other", "nonsense"]) {
      expect(readFilter([word], columns)).toEqual({ ranges: new Map(), others: [word] });
    }
  });

  it("keeps the narrower of two conditions", () => {
    expect(writeFilter(readFilter(["lr>0.01", "lr>=0.001"], columns), columns)).toEqual(["lr>0.01"]);
    expect(writeFilter(readFilter(["model!=a", "model!=b"], columns), columns)).toEqual(["model=c"]);
  });

  it("marks the trials for which all hold, and none without the value", () => {
    expect(shown()).toEqual([4, 1, 1, 1, 1]);
    expect(shown("lr>0.001")).toEqual([2, 1, 1, 0, 0]);
    expect(shown("lr>=0.001", "model!=a")).toEqual([2, 0, 1, 1, 0]);
    expect(shown("model=a", "model=b")).toEqual([0, 0, 0, 0, 0]);
  });

  it("writes short numbers", () => {
    expect(brushed(0.000123456)).toBe(0.0001235);
    expect(writeRange(lr, { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY })).toEqual([]);
  });
});
