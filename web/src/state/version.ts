// Versions of what is shown: signals that grow when it is to be read again.
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { TrialChange } from "../api/messages";
import { int } from "../api/values";
import { paced } from "./pace";
import { useStudy, type LiveStudy } from "./study";

const SLOW_MS = 10_000;

// Whether one of the trials `numbers` is to be read again. Undefined: changes were missed.
export function concerns(change: TrialChange | undefined, numbers: readonly number[]): boolean {
  return change === undefined || (change.trial !== undefined && numbers.includes(int(change.trial.number)));
}

// Grows at most each `pace_ms` after a step that `follow` reports; it returns how to stop.
export function usePacedVersion(pace_ms: number, follow: (step: () => void) => () => void, inputs: readonly unknown[]): ReadonlySignal<number> {
  const version = useSignal(0);
  useEffect(() => {
    const step = paced(() => {
      version.value += 1;
    }, pace_ms);
    const stop = follow(step);
    return () => {
      stop();
      step.cancel();
    };
  }, inputs);
  return version;
}

// Grows when one of the trials changed, at most each `pace_ms`.
export function useTrialsVersion(live: LiveStudy, numbers: readonly number[], pace_ms: number): ReadonlySignal<number> {
  const follow = (step: () => void) =>
    live.onChange((change) => {
      if (concerns(change, numbers)) step();
    });
  return usePacedVersion(pace_ms, follow, [live, numbers.join(",")]);
}

// Grows as the study goes on, at most each 10 s, for what is dear to read.
export function useSlowVersion(): ReadonlySignal<number> {
  const live = useStudy();
  const follow = (step: () => void) => {
    let first = true;
    return live.version.subscribe(() => {
      if (!first) step();
      first = false;
    });
  };
  return usePacedVersion(SLOW_MS, follow, [live]);
}
