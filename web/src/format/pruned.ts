// A trial is pruned where it ended early and is no failure: stopped by the pruner, or for its memory.
// These words say which, wherever a state, a filter, a legend or a reason does.

// By the names of PruneReason.
export const PRUNED_WHY = {
  PRUNER: "by the pruner",
  OUT_OF_MEMORY: "out of memory",
  HOST_OUT_OF_MEMORY: "out of host memory",
  PREDICTED_OUT_OF_MEMORY: "predicted out of memory",
} as const;

export type PrunedWhy = keyof typeof PRUNED_WHY;

export function isPrunedWhy(word: string): word is PrunedWhy {
  return word in PRUNED_WHY;
}

export function prunedText(why: PrunedWhy): string {
  return `pruned: ${PRUNED_WHY[why]}`;
}

// The server's name for the end of a trial by its own limit of time, which it counts with the pruner's.
export const TIME_LIMIT = "time limit";
