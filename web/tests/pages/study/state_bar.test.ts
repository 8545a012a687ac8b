import { expect, it } from "vitest";
import { stateParts } from "../../../src/pages/study/state_bar";

const counts = { completed: "10", infeasible: "2", pruned: "7", oom_predicted: "3", failed: "1" };
const texts = (forMemory: number | undefined) => stateParts(counts, forMemory).map(({ word, amount }) => `${amount} ${word}`);

it("says for each pruned trial what it was pruned for", () => {
  expect(texts(5)).toEqual(["8 completed", "2 infeasible", "2 pruned: by the pruner", "2 pruned: out of memory", "3 pruned: predicted out of memory", "1 failed"]);
  expect(texts(3)).toContain("4 pruned: by the pruner");
  expect(texts(7)).not.toContain("0 pruned: by the pruner");
});

it("says no more than is known", () => {
  expect(texts(undefined)).toContain("4 pruned");
  // Trials of others that count against no budget.
  expect(texts(100)).toContain("4 pruned: out of memory");
});
