// A scale of colours that is read in order by colour-blind readers and in grey: viridis, whose
// lightness grows evenly, by ten of its colours.
const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];

const table: number[][] = VIRIDIS.map((colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)));

export type Ground = "light" | "dark";

// The ends that the ground swallows are left out: bright yellow on white, dark violet on black.
const PARTS: Record<Ground, [number, number]> = { light: [0, 0.88], dark: [0.22, 1] };

// The colour of a share from 0 to 1.
export function ramp(share: number, ground: Ground): string {
  const [from, to] = PARTS[ground];
  const kept = Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
  const at = (from + kept * (to - from)) * (table.length - 1);
  const index = Math.min(table.length - 2, Math.floor(at));
  const rest = at - index;
  const [low, high] = [table[index] ?? [], table[index + 1] ?? []];
  const parts = low.map((part, channel) => Math.round(part + rest * ((high[channel] ?? part) - part)));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

// `steps` colours from the first to the last.
export function rampSteps(steps: number, ground: Ground): string[] {
  return Array.from({ length: steps }, (_, index) => ramp(steps === 1 ? 0.5 : index / (steps - 1), ground));
}
