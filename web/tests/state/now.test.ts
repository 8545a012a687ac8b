import { effect } from "@preact/signals";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { now } from "../../src/state/now";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("moves each second, and only while something shows it", () => {
  vi.advanceTimersByTime(60_000);
  const seen: number[] = [];
  const start = Date.now();
  const stop = effect(() => {
    seen.push(now.value - start);
  });
  vi.advanceTimersByTime(2000);
  expect(new Set(seen)).toEqual(new Set([0, 1000, 2000]));
  stop();
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(2000);
  expect(seen.at(-1)).toBe(2000);
});
