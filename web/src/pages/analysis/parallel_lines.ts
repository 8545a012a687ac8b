// Parallel coordinates as numbers: where each trial's line crosses each axis, what a brush is, and
// the drawing of any lines with any pen.
import { drawAxisTexts } from "./parallel_axes";
import type { Colour } from "../../charts/colours";
import { scaleOf, share, valueAt, type Box, type Scale } from "../../charts/axes";
import type { Pen } from "../../charts/pen";
import { brushed, type Range } from "./filter";
import type { Column, Table } from "./table";

export const MOST_LINES = 10_000;
export const COLOURS = 12;

export interface Axis {
  column: Column;
  scale: Scale;
}

export interface Lines {
  axes: Axis[];
  first: number; // row of the table that the first line is
  count: number;
  // Of line i at axis k, at k * count + i: 0 low, 1 high, NaN: no value.
  places: Float32Array;
  // Of each line: which of COLOURS its value has, 0 the best; COLOURS: it has none.
  buckets: Uint8Array;
  // The lines in a mixed order, so that the first of them stand for all.
  order: Int32Array;
}

export function axisOf(column: Column): Axis {
  if (column.choices !== undefined) return { column, scale: { kind: "choice", choices: column.choices } };
  const positive = column.log || (column.objective && spansDecades(column.values));
  return { column, scale: scaleOf(column.values, positive, 0.001) };
}

// Objectives are shown on a logarithmic axis where the middle of them would not be seen otherwise.
export function spansDecades(values: Float64Array): boolean {
  const sorted = values.filter(Number.isFinite).sort();
  const low = sorted[0] ?? 0;
  const high = sorted.at(-1) ?? 0;
  const middle = sorted[sorted.length >> 1] ?? 0;
  return sorted.length >= 5 && low > 0 && high / low >= 100 && high / middle >= 10;
}

export function makeLines(table: Table, columns: readonly Column[], objective: Column): Lines {
  const first = Math.max(0, table.rows - MOST_LINES);
  const count = table.rows - first;
  const axes = columns.map(axisOf);
  const places = new Float32Array(axes.length * count);
  axes.forEach(({ column, scale }, axis) => {
    for (let line = 0; line < count; line += 1) {
      const value = column.values[first + line] ?? Number.NaN;
      places[axis * count + line] = Number.isFinite(value) ? Math.min(1, Math.max(0, share(scale, value))) : Number.NaN;
    }
  });
  return { axes, first, count, places, buckets: bucketsOf(objective, first, count), order: mixed(count) };
}

// By rank, not by value: a few bad trials do not make all others the same colour.
export function bucketsOf(objective: Column, first: number, count: number): Uint8Array {
  const buckets = new Uint8Array(count).fill(COLOURS);
  const values = objective.values;
  const ranked: number[] = [];
  for (let line = 0; line < count; line += 1) if (Number.isFinite(values[first + line])) ranked.push(line);
  const sign = objective.minimized ? 1 : -1;
  ranked.sort((a, b) => sign * ((values[first + a] ?? 0) - (values[first + b] ?? 0)));
  ranked.forEach((line, rank) => {
    buckets[line] = Math.floor((rank / ranked.length) * COLOURS);
  });
  return buckets;
}

// The same mixture each time, so that a brush that is moved does not flicker.
export function mixed(count: number): Int32Array {
  const order = Int32Array.from({ length: count }, (_, index) => index);
  let seed = 12345;
  for (let index = count - 1; index > 0; index -= 1) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = seed % (index + 1);
    const kept = order[index] ?? 0;
    order[index] = order[other] ?? 0;
    order[other] = kept;
  }
  return order;
}

// The lines of the shown trials, in the mixed order.
export function shownLines(lines: Lines, mask: Uint8Array): Int32Array {
  const found = new Int32Array(lines.count);
  let length = 0;
  for (let index = 0; index < lines.count; index += 1) {
    const line = lines.order[index] ?? 0;
    if (mask[lines.first + line] === 1) {
      found[length] = line;
      length += 1;
    }
  }
  return found.subarray(0, length);
}

export interface Layout {
  box: Box; // axes are at its left and right edge and between, as high as it is
  xs: Float32Array;
}

export const AXIS_ROOM = 92; // CSS pixels that an axis needs at least

export function layOut(axes: number, width: number, height: number): Layout {
  const box = { left: 46, top: 34, width: Math.max(60, width - 92), height: height - 62 };
  const xs = Float32Array.from({ length: axes }, (_, axis) => box.left + (axes === 1 ? 0.5 : axis / (axes - 1)) * box.width);
  return { box, xs };
}

// Draws lines `from` to `to` of `which`. `styles`: of each colour and of lines without a value; one
// style for all where there is only one.
export function drawLines(pen: Pen, lines: Lines, layout: Layout, which: Int32Array, from: number, to: number, styles: readonly string[]): void {
  const { places, count, buckets, axes } = lines;
  const { xs, box } = layout;
  const bottom = box.top + box.height;
  for (let bucket = styles.length - 1; bucket >= 0; bucket -= 1) {
    pen.strokeStyle = styles[bucket] ?? "#888";
    pen.beginPath();
    let drawn = false;
    for (let index = from; index < to; index += 1) {
      const line = which[index] ?? 0;
      if (styles.length > 1 && buckets[line] !== bucket) continue;
      drawn = true;
      let gap = true;
      for (let axis = 0; axis < axes.length; axis += 1) {
        const place = places[axis * count + line] ?? Number.NaN;
        if (place !== place) {
          gap = true;
          continue;
        }
        const y = bottom - place * box.height;
        if (gap) pen.moveTo(xs[axis] ?? 0, y);
        else pen.lineTo(xs[axis] ?? 0, y);
        gap = false;
      }
    }
    if (drawn) pen.stroke();
  }
}

// A brush from share `low` to share `high` of an axis; undefined: it holds for all.
export function rangeOf({ column, scale }: Axis, low: number, high: number): Range | undefined {
  if (low <= 0 && high >= 1) return undefined;
  if (scale.kind === "choice") {
    const chosen = new Set<number>();
    scale.choices.forEach((_, place) => {
      const at = share(scale, place);
      if (at >= low && at <= high) chosen.add(place);
    });
    if (chosen.size === 0) chosen.add(Math.min(scale.choices.length - 1, Math.floor(((low + high) / 2) * scale.choices.length)));
    return { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY, chosen };
  }
  const from = low <= 0 ? Number.NEGATIVE_INFINITY : brushed(valueAt(scale, low));
  const to = high >= 1 ? Number.POSITIVE_INFINITY : brushed(valueAt(scale, high));
  if (!column.whole) return { low: from, high: to };
  // A brush between two whole numbers is for the nearest.
  if (Math.ceil(from) <= Math.floor(to)) return { low: Math.ceil(from), high: Math.floor(to) };
  const nearest = Math.round((from + to) / 2);
  return { low: nearest, high: nearest };
}

// Where a range lies on its axis, as shares.
export function extentOf({ scale }: Axis, range: Range | undefined): [number, number] {
  if (range === undefined) return [0, 1];
  if (scale.kind === "choice") {
    const places = [...(range.chosen ?? scale.choices.keys())];
    const half = 0.5 / Math.max(1, scale.choices.length);
    if (places.length === 0) return [0, 0];
    return [share(scale, Math.min(...places)) - half, share(scale, Math.max(...places)) + half];
  }
  const clamp = (value: number) => Math.min(1, Math.max(0, value));
  const low = Number.isFinite(range.low) ? clamp(share(scale, range.low)) : 0;
  const high = Number.isFinite(range.high) ? clamp(share(scale, range.high)) : 1;
  return [Number.isNaN(low) ? 0 : low, Number.isNaN(high) ? 1 : high];
}

export function drawAll(pen: Pen, lines: Lines, layout: Layout, shown: Int32Array, styles: readonly string[], colour: Colour): void {
  pen.lineWidth = 1;
  pen.globalAlpha = 0.5;
  drawLines(pen, lines, layout, lines.order, 0, lines.count, [colour("line")]);
  pen.globalAlpha = lineAlpha(shown.length);
  drawLines(pen, lines, layout, shown, 0, shown.length, styles);
  pen.globalAlpha = 1;
  drawAxisTexts(pen, lines, layout, colour);
}

export function lineAlpha(count: number): number {
  return count > 4000 ? 0.35 : count > 1000 ? 0.5 : count > 200 ? 0.7 : 0.9;
}
