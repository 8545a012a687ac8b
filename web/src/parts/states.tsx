// The states of trials: their words, colours and shapes. Colour never stands alone.
import type { PruneReason, Trial, TrialState } from "../api/messages";
import { prunedText, TIME_LIMIT } from "../format/pruned";

export type Letter = "C" | "I" | "P" | "O" | "E" | "F" | "X" | "R" | "Q";

export interface StateLook {
  letter: Letter;
  word: string;
  // The name of the colour in style/theme.css: --state-NAME.
  colour: string;
  shape: "disc" | "ring" | "cross" | "triangle" | "square" | "diamond" | "dash";
}

// The letters are those of GetHistory. O also stands for the memory of the host, and P for a trial's
// time limit, which trialWord() names.
export const LOOKS: Record<Letter, StateLook> = {
  C: { letter: "C", word: "completed", colour: "completed", shape: "disc" },
  I: { letter: "I", word: "infeasible", colour: "infeasible", shape: "ring" },
  P: { letter: "P", word: prunedText("PRUNER"), colour: "pruned", shape: "dash" },
  O: { letter: "O", word: prunedText("OUT_OF_MEMORY"), colour: "oom", shape: "cross" },
  E: { letter: "E", word: prunedText("PREDICTED_OUT_OF_MEMORY"), colour: "predicted", shape: "triangle" },
  F: { letter: "F", word: "failed", colour: "failed", shape: "square" },
  X: { letter: "X", word: "cancelled", colour: "cancelled", shape: "diamond" },
  R: { letter: "R", word: "running", colour: "running", shape: "ring" },
  Q: { letter: "Q", word: "queued", colour: "queued", shape: "diamond" },
};

export function letterOf(state: TrialState | undefined, reason: PruneReason | undefined, violation = 0): Letter {
  switch (state) {
    case "TRIAL_STATE_COMPLETED":
      return violation > 0 ? "I" : "C";
    case "TRIAL_STATE_PRUNED":
      if (reason === "PRUNE_REASON_PREDICTED_OUT_OF_MEMORY") return "E";
      return reason === "PRUNE_REASON_PRUNER" || reason === undefined ? "P" : "O";
    case "TRIAL_STATE_FAILED":
      return "F";
    case "TRIAL_STATE_CANCELLED":
      return "X";
    case "TRIAL_STATE_RUNNING":
      return "R";
    default:
      return "Q";
  }
}

export function letterOfTrial(trial: Trial): Letter {
  return letterOf(trial.state, trial.prune_reason, Number(trial.violation ?? 0));
}

// The state of a trial in words, as exact as the trial says it.
export function trialWord(trial: Trial): string {
  if (trial.prune_reason === "PRUNE_REASON_HOST_OUT_OF_MEMORY") return prunedText("HOST_OUT_OF_MEMORY");
  if (trial.outcome?.stopped_by_pruner?.pruner === TIME_LIMIT) return "pruned: by its time limit";
  return LOOKS[letterOfTrial(trial)].word;
}

function Shape({ of }: { of: StateLook["shape"] }) {
  switch (of) {
    case "disc":
      return <circle cx="5" cy="5" r="4" fill="currentColor" />;
    case "ring":
      return <circle cx="5" cy="5" r="3.2" fill="none" stroke="currentColor" stroke-width="1.8" />;
    case "cross":
      return <path d="M1.5 1.5l7 7m0-7l-7 7" stroke="currentColor" stroke-width="2" />;
    case "triangle":
      return <path d="M5 1l4.3 8H.7z" fill="currentColor" />;
    case "square":
      return <path d="M1.2 1.2h7.6v7.6H1.2z" fill="currentColor" />;
    case "diamond":
      return <path d="M5 .5L9.5 5 5 9.5.5 5z" fill="none" stroke="currentColor" stroke-width="1.4" />;
    case "dash":
      return <path d="M1 5h8" stroke="currentColor" stroke-width="2.6" />;
  }
}

export function StateMark({ look }: { look: StateLook }) {
  return (
    <svg class={`mark state-${look.colour}`} viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
      {Shape({ of: look.shape })}
    </svg>
  );
}

export function StateBadge({ letter, word }: { letter: Letter; word?: string | undefined }) {
  const look = LOOKS[letter];
  return (
    <span class="state">
      <StateMark look={look} />
      {word ?? look.word}
    </span>
  );
}

export function TrialBadge({ trial }: { trial: Trial }) {
  return <StateBadge letter={letterOfTrial(trial)} word={trialWord(trial)} />;
}
