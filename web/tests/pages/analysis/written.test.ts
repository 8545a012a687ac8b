import { expect, test } from "vitest";
import type { Range } from "../../../src/pages/analysis/filter";
import { WrittenRanges } from "../../../src/pages/analysis/written";

const lr = (low: number) => new Map<string, Range>([["lr", { low, high: 1 }]]);
const all = new Map<string, Range>();

test("what comes back late is the chart's own, whatever was brushed since", () => {
  const written = new WrittenRanges(all);
  written.wrote(lr(0.1));
  written.wrote(lr(0.3));
  expect(written.isOwn(lr(0.1))).toBe(true);
  written.wrote(all);
  expect(written.isOwn(lr(0.3))).toBe(true);
  expect(written.isOwn(all)).toBe(true);
  expect(written.isOwn(all)).toBe(true);
});

test("a link is another's, also to what was shown before", () => {
  const written = new WrittenRanges(all);
  written.wrote(lr(0.1));
  expect(written.isOwn(lr(0.1))).toBe(true);
  expect(written.isOwn(lr(0.5))).toBe(false);
  expect(written.isOwn(lr(0.5))).toBe(true);
  expect(written.isOwn(lr(0.1))).toBe(false);
  expect(written.isOwn(all)).toBe(false);
});
