import { expect, it } from "vitest";
import { firstExtension, readExtension } from "../../../src/pages/study/extend";
import { extendedText } from "../../../src/format/study";

const study = { name: "s", budget: { trials: "10", target: 0.9 } };
const first = firstExtension(study);

it("adds 50 trials at first, where trials are the budget", () => {
  expect(readExtension(study, first)).toEqual({ name: "s", add_trials: "50" });
  expect(firstExtension({ budget: { wall_clock: "3600s" } })).toEqual({ trials: "", hours: "", target: "" });
});

it("changes the value at which a study ends", () => {
  const typed = { ...first, trials: "" };
  expect(readExtension(study, { ...typed, target: "0.95" })).toEqual({ name: "s", target: 0.95 });
  expect(readExtension(study, { ...typed, target: " " })).toEqual({ name: "s", remove_target: true });
  expect(readExtension(study, { ...typed, hours: "1.5" })).toEqual({ name: "s", wall_clock: "5400s" });
});

it("says what was expected", () => {
  expect(() => readExtension(study, { ...first, trials: "many" })).toThrow("Trials to add: expected a whole number, got “many”.");
  expect(() => readExtension(study, { ...first, hours: "-1" })).toThrow("above 0");
  expect(() => readExtension(study, { ...first, target: "high" })).toThrow("Target: expected a number, got “high”.");
  expect(() => readExtension(study, { ...first, trials: " " })).toThrow("Type how many trials to add");
});

it("says what came of it", () => {
  const ended = { ...study, state: "STUDY_STATE_FINISHED", counts: { completed: "9", failed: "1" } } as const;
  expect(extendedText({ ...ended, state: "STUDY_STATE_ACTIVE" })).toBe("The budget is now 10 of 10 trials.");
  expect(extendedText({ ...ended, budget: { trials: "20" }, order: "STUDY_ORDER_STOP" })).toBe("The budget is now 10 of 20 trials. Resume the study to go on.");
  expect(extendedText({ ...ended, waiting_for: "its target is reached" })).toBe("The budget is now 10 of 10 trials. The study stays finished: its target is reached.");
});
