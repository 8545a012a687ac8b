import { describe, expect, it } from "vitest";
import type { Measurement } from "../../../src/api/messages";
import { peakOf, predictionsOf, scaleEnd } from "../../../src/pages/trial/memory";
import { curveOf, metricNames } from "../../../src/pages/trial/curve";

describe("memory by stage", () => {
  const attempt = {
    predicted_bytes: "79",
    memory: { limit_bytes: "12", live_peak_bytes: "10", device_peak_bytes: "11" },
    memory_records: [{ stage: "Trial Start" }, { stage: "OOM Error", predicted_bytes: "77" }, { stage: "replan", plan: {} }, { stage: "Probe", predicted_bytes: "10" }, { stage: "Training End" }],
  };

  it("follows the prediction of the plan in force", () => {
    expect(predictionsOf(attempt)).toEqual([79, 77, 0, 10, 10]);
  });

  it("leaves predictions that are far away out of the axis", () => {
    expect(scaleEnd(attempt)).toBeCloseTo(12 * 1.02);
    expect(scaleEnd({ ...attempt, predicted_bytes: "20" })).toBeCloseTo(20 * 1.02);
    expect(scaleEnd({})).toBeGreaterThan(0);
  });

  it("takes the largest view that is known as the peak", () => {
    expect(peakOf(attempt)).toBe(11);
    expect(peakOf({ memory: { live_peak_bytes: "3" } })).toBe(3);
    expect(peakOf({})).toBe(0);
  });
});

describe("curves", () => {
  const measurements: Measurement[] = [
    { step: "2", metrics: { loss: 1, acc: 0.5 } },
    { step: "1", metrics: { loss: 2 } },
    { step: "2", metrics: { loss: "NaN" as const } },
    { metrics: { loss: 3 } },
  ];

  it("are by step; a later value of a step counts, and what is no number is a gap", () => {
    expect(curveOf(measurements, "loss")).toEqual({ steps: [0, 1, 2], values: [3, 2, null] });
    expect(curveOf(measurements, "acc")).toEqual({ steps: [2], values: [0.5] });
  });

  it("offer objectives first", () => {
    expect(metricNames({ objectives: [{ metric: "loss" }, { metric: "none" }] }, measurements)).toEqual(["loss", "acc"]);
  });
});
