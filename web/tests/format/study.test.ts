import { describe, expect, it } from "vitest";
import { isUnmeasured, waitsFor } from "../../src/format/study";

describe("what a study waits for", () => {
  const waiting = { state: "STUDY_STATE_ACTIVE", waiting_for: "no worker is connected" } as const;

  it("is said of a study of the server alone", () => {
    expect(waitsFor(waiting, true)).toBe("no worker is connected");
    expect(waitsFor(waiting, false)).toBe("");
    expect(waitsFor({ ...waiting, state: "STUDY_STATE_FINISHED" }, true)).toBe("");
    expect(waitsFor({ state: "STUDY_STATE_ACTIVE" }, true)).toBe("");
  });
});

it("a study of imported trials alone has measured nothing", () => {
  expect(isUnmeasured({ counts: { completed: "5" } })).toBe(true);
  expect(isUnmeasured({ counts: { imported: "5" } })).toBe(true);
  expect(isUnmeasured({ counts: { completed: "5" }, time_by_use: { useful: "3s" } })).toBe(false);
  // Nothing ran: nothing was to be measured.
  expect(isUnmeasured({})).toBe(false);
  expect(isUnmeasured({ counts: { pruned: "2", oom_predicted: "2", cancelled: "1" } })).toBe(false);
  // The first trial of its own runs.
  expect(isUnmeasured({ counts: { completed: "5", running: "1" } })).toBe(false);
});
