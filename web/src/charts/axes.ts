// Scales and axes of our own charts.
import { number } from "../format/format";
import type { Colour } from "./colours";
import { fitText, FONT, textWidth, type Pen } from "./pen";

export type Scale =
  | { kind: "linear" | "log" | "time"; low: number; high: number }
  // Choices lie at 0, 1, 2 …
  | { kind: "choice"; choices: readonly string[] };

export interface Tick {
  at: number;
  word: string;
}

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

// Where a value lies: 0 at the low end, 1 at the high one.
export function share(scale: Scale, value: number): number {
  switch (scale.kind) {
    case "choice":
      return (value + 0.5) / Math.max(1, scale.choices.length);
    case "log":
      return Math.log(value / scale.low) / Math.log(scale.high / scale.low);
    default:
      return (value - scale.low) / (scale.high - scale.low);
  }
}

// The value at a share.
export function valueAt(scale: Scale, at: number): number {
  switch (scale.kind) {
    case "choice":
      return at * scale.choices.length - 0.5;
    case "log":
      return scale.low * (scale.high / scale.low) ** at;
    default:
      return scale.low + at * (scale.high - scale.low);
  }
}

// A scale around values, with a margin that keeps marks off the frame. `log` where all are above 0.
export function scaleOf(values: Iterable<number>, log: boolean, margin = 0.04): Scale {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return scaleFrom(low, high, log, margin);
}

export function scaleFrom(low: number, high: number, log: boolean, margin = 0.04): Scale {
  if (!(low <= high)) return { kind: "linear", low: 0, high: 1 };
  if (log && low > 0) {
    const factor = high > low ? (high / low) ** margin : 1.5;
    return { kind: "log", low: low / factor, high: high * factor };
  }
  const room = (high - low) * margin || Math.abs(high) * 0.1 || 1;
  return { kind: "linear", low: low - room, high: high + room };
}

// Round values within a linear scale, about `wanted` of them.
export function linearTicks(low: number, high: number, wanted: number): number[] {
  const rough = (high - low) / Math.max(1, wanted);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const ticks: number[] = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) {
    ticks.push(Number((index * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(low: number, high: number, wanted: number): number[] {
  const decades = Math.log10(high / low);
  if (decades < 1.2) return linearTicks(low, high, wanted).filter((tick) => tick > 0);
  const every = Math.max(1, Math.ceil(decades / wanted));
  const factors = decades < wanted / 2.5 ? [1, 2, 5] : [1];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; power += 1) {
    if (power % every !== 0) continue;
    for (const factor of factors) {
      const tick = Number((factor * 10 ** power).toPrecision(12));
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
    }
  }
  return ticks;
}

const TIME_STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800, 2592000];

// In the reader's zone; from Unix seconds.
function timeTicks(low: number, high: number, wanted: number): Tick[] {
  const rough = (high - low) / Math.max(1, wanted);
  const step = TIME_STEPS.find((one) => one >= rough) ?? Math.ceil(rough / 2592000) * 2592000;
  const zone = new Date(low * 1000).getTimezoneOffset() * 60;
  const format = new Intl.DateTimeFormat(undefined, step >= 86400 ? { month: "short", day: "numeric" } : timeFormat(step, high - low));
  const ticks: Tick[] = [];
  for (let at = Math.ceil((low - zone) / step) * step + zone; at <= high; at += step) ticks.push({ at, word: format.format(at * 1000) });
  return ticks;
}

function timeFormat(step: number, span: number): Intl.DateTimeFormatOptions {
  const clock: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit" };
  if (step < 60) return { ...clock, second: "2-digit" };
  return span > 86400 ? { ...clock, month: "short", day: "numeric" } : clock;
}

export function ticksOf(scale: Scale, wanted: number): Tick[] {
  switch (scale.kind) {
    case "choice": {
      const every = Math.max(1, Math.ceil(scale.choices.length / Math.max(1, wanted * 2)));
      return scale.choices.map((word, at) => ({ at, word })).filter(({ at }) => at % every === 0);
    }
    case "time":
      return timeTicks(scale.low, scale.high, wanted);
    case "log":
      return logTicks(scale.low, scale.high, wanted).map((at) => ({ at, word: number(at, 4) }));
    default:
      return linearTicks(scale.low, scale.high, wanted).map((at) => ({ at, word: number(at, 4) }));
  }
}

export interface AxesLook {
  x: string; // what the axis shows
  y: string;
  xTicks?: number; // about how many
  yTicks?: number;
}

// The frame in which a chart draws: what axes leave of the room.
export function innerBox(width: number, height: number, y: Scale, right = 10): Box {
  const widest = Math.max(...ticksOf(y, 5).map(({ word }) => textWidth(word, 11)), 12);
  const left = Math.min(Math.min(130, width * 0.35), widest + 12) + 18;
  return { left, top: 8, width: Math.max(20, width - left - right), height: Math.max(20, height - 50) };
}

export function drawAxes(pen: Pen, box: Box, x: Scale, y: Scale, look: AxesLook, colour: Colour): void {
  const bottom = box.top + box.height;
  const xTicks = ticksOf(x, look.xTicks ?? Math.max(3, box.width / 80));
  const yTicks = ticksOf(y, look.yTicks ?? Math.max(2, box.height / 40));
  pen.lineWidth = 1;
  pen.strokeStyle = colour("grid");
  pen.beginPath();
  for (const { at } of xTicks) {
    const place = Math.round(box.left + share(x, at) * box.width) + 0.5;
    pen.moveTo(place, box.top);
    pen.lineTo(place, bottom + 4);
  }
  for (const { at } of yTicks) {
    const place = Math.round(bottom - share(y, at) * box.height) + 0.5;
    pen.moveTo(box.left - 4, place);
    pen.lineTo(box.left + box.width, place);
  }
  pen.stroke();
  pen.fillStyle = colour("soft");
  pen.font = FONT.replace("12px", "11px");
  pen.textAlign = "center";
  pen.textBaseline = "top";
  const room = x.kind === "choice" ? box.width / Math.max(1, xTicks.length) - 4 : 90;
  for (const { at, word } of xTicks) {
    const half = Math.min(textWidth(word, 11), room) / 2;
    const place = Math.min(box.left + box.width - half + 8, Math.max(box.left + half - 8, box.left + share(x, at) * box.width));
    pen.fillText(fitText(word, room, 11), place, bottom + 6);
  }
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const { at, word } of yTicks) pen.fillText(fitText(word, box.left - 24, 11), box.left - 7, bottom - share(y, at) * box.height);
  pen.font = FONT;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  pen.fillText(fitText(look.x, box.width), box.left + box.width / 2, bottom + 36);
  pen.save();
  pen.translate(12, box.top + box.height / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(fitText(look.y, box.height), 0, 0);
  pen.restore();
}

// Draws within the frame alone.
export function within(pen: Pen, box: Box, draw: () => void): void {
  pen.save();
  pen.beginPath();
  pen.rect(box.left, box.top, box.width, box.height);
  pen.clip();
  draw();
  pen.restore();
}

// What colours mean, as a bar with the values of its ends.
export function drawColourBar(pen: Pen, box: Box, steps: readonly string[], low: string, high: string, title: string, colour: Colour): void {
  const each = box.width / steps.length;
  steps.forEach((step, index) => {
    pen.fillStyle = step;
    pen.fillRect(box.left + index * each, box.top, each + 0.5, box.height);
  });
  pen.font = FONT.replace("12px", "11px");
  pen.fillStyle = colour("soft");
  pen.textBaseline = "top";
  pen.textAlign = "left";
  pen.fillText(low, box.left, box.top + box.height + 3);
  pen.textAlign = "right";
  pen.fillText(high, box.left + box.width, box.top + box.height + 3);
  pen.textAlign = "center";
  pen.fillText(fitText(title, box.width - textWidth(low + high, 11), 11), box.left + box.width / 2, box.top + box.height + 3);
}
