import { describe, expect, it } from "vitest";
import { waitsFor } from "../../src/format/study";

describe("what a study waits for", () => {
  const waiting = { state: "STUDY_STATE_ACTIVE", waiting_for: "no worker is connected" } as const;

  it("is said of a study of the server alone", () => {
    expect(waitsFor(waiting, true)).toBe("no worker is connected");
    expect(waitsFor(waiting, false)).toBe("");
    expect(waitsFor({ ...waiting, state: "STUDY_STATE_FINISHED" }, true)).toBe("");
    expect(waitsFor({ state: "STUDY_STATE_ACTIVE" }, true)).toBe("");
  });
});
