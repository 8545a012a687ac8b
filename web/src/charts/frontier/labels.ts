// Where the names of lines are written: at their line, where they cover no mark of a trial.
import type { Box } from "../axes";

export const LABEL_HEIGHT = 16;
// Above the chart, for names that find no free place in it.
export const STRIP = 20;

export interface Wanted {
  word: string;
  width: number; // pixels
  points: readonly [number, number][]; // of the line, in pixels
}

export interface Placed {
  word: string;
  box: Box;
}

function meet(a: Box, b: Box): boolean {
  return a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
}

// On the line's points, those furthest to the right first: ending at it, else above, below or right of it.
function candidates({ width, points }: Wanted, box: Box): Box[] {
  const sorted = [...points].sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const half = LABEL_HEIGHT / 2;
  return sorted.flatMap(([x, y]) =>
    [
      [x - width, y - half],
      [x - width, y - LABEL_HEIGHT - 3],
      [x - width, y + 3],
      [x + 3, y - half],
    ].map(([left = 0, top = 0]) => ({
      left: Math.max(box.left, Math.min(box.left + box.width - width, left)),
      top: Math.max(box.top, Math.min(box.top + box.height - LABEL_HEIGHT, top)),
      width,
      height: LABEL_HEIGHT,
    })),
  );
}

function endsAbove({ points }: Wanted, box: Box): boolean {
  return points.some(([, y]) => y <= box.top + 1);
}

// In the strip, above the line's highest point or right of that; undefined: it is full.
function inStrip({ width, points }: Wanted, box: Box, taken: readonly Box[]): Box | undefined {
  const [highest] = [...points].sort((a, b) => a[1] - b[1]);
  let left = Math.max(box.left, Math.min(box.left + box.width - width, (highest?.[0] ?? 0) - width / 2));
  for (;;) {
    const place = { left, top: box.top - STRIP, width, height: LABEL_HEIGHT };
    const other = taken.find((one) => meet(one, place));
    if (other === undefined) return left + width <= box.left + box.width ? place : undefined;
    left = other.left + other.width + 3;
  }
}

// `marks` are never covered, `figures` only where there is no other place. Names come first that
// matter most; what finds no place is left out.
export function placeLabels(wanted: readonly Wanted[], box: Box, marks: readonly Box[], figures: readonly Box[]): Placed[] {
  const placed: Placed[] = [];
  for (const one of wanted) {
    if (one.points.length === 0) continue;
    const taken = placed.map(({ box: other }) => other);
    const free = candidates(one, box).filter((place) => ![...taken, ...marks].some((other) => meet(other, place)));
    const above = inStrip(one, box, taken);
    const place = free.find((at) => !figures.some((figure) => meet(figure, at))) ?? (endsAbove(one, box) ? above : undefined) ?? free[0] ?? above;
    if (place !== undefined) placed.push({ word: one.word, box: place });
  }
  return placed;
}
