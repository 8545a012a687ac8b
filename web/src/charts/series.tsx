// Colours and dashes of lines that stand for trials, studies or workers.

export interface SeriesLook {
  colour: string; // of style/theme.css
  dash: number[]; // empty: a whole line
}

const COLOURS = [
  "state-completed",
  "state-oom",
  "state-running",
  "state-pruned",
  "state-predicted",
  "state-failed",
  "state-preempted",
  "state-lost",
] as const;
const DASHES = [[], [8, 4], [2, 3]];

// Looks repeat after 24. Neighbours differ in colour, and those of one colour differ in their dashes.
export function seriesLook(index: number): SeriesLook {
  const colour = COLOURS[index % COLOURS.length] ?? COLOURS[0];
  const dash = DASHES[Math.floor(index / COLOURS.length) % DASHES.length] ?? [];
  return { colour, dash };
}

// A short line as it is in the chart, for legends.
export function LineSample({ look }: { look: SeriesLook }) {
  return (
    <svg class={look.colour} viewBox="0 0 26 8" width="26" height="8" aria-hidden="true">
      <path d="M0 4h26" stroke="currentColor" stroke-width="2.5" stroke-dasharray={look.dash.join(" ")} />
    </svg>
  );
}
