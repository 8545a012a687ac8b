import { expect, it } from "vitest";
import { trialWord } from "../../src/parts/states";

it("says why a trial was pruned", () => {
  const pruned = { state: "TRIAL_STATE_PRUNED" } as const;
  expect(trialWord({ ...pruned, prune_reason: "PRUNE_REASON_PRUNER", outcome: { stopped_by_pruner: { pruner: "median" } } })).toBe("pruned: by the pruner");
  expect(trialWord({ ...pruned, prune_reason: "PRUNE_REASON_PRUNER", outcome: { stopped_by_pruner: { pruner: "time limit" } } })).toBe("pruned: by its time limit");
  expect(trialWord({ ...pruned, prune_reason: "PRUNE_REASON_OUT_OF_MEMORY" })).toBe("pruned: out of memory");
  expect(trialWord({ ...pruned, prune_reason: "PRUNE_REASON_HOST_OUT_OF_MEMORY" })).toBe("pruned: out of host memory");
  expect(trialWord({ ...pruned, prune_reason: "PRUNE_REASON_PREDICTED_OUT_OF_MEMORY" })).toBe("pruned: predicted out of memory");
  expect(trialWord({ state: "TRIAL_STATE_FAILED" })).toBe("failed");
});
