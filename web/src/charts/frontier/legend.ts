// What colours, hatching and lines of the frontier mean, below it: the colours show shares of the
// limit, so that pictures of two studies can be compared.
import { bytes, percent } from "../../format/format";
import type { Box } from "../axes";
import type { Colour } from "../colours";
import { fitText, FONT, textWidth, type Pen } from "../pen";
import { ramp, rampSteps, type Ground } from "../ramp";

// Of the limit: the ends of the colours, and what is written at them.
const TICKS = [1 / 16, 1 / 4, 1, 4];
const [LOW, HIGH] = [1 / 16, 4];

const BAR_HEIGHT = 62; // with its title and its ticks
const LINE = 19;
const SWATCH = 22;

// Sizes differ by factors, so that colours follow the logarithm: 0 at a sixteenth of the limit, 1 at
// four times the limit, and beyond.
export function shade(needed: number, usable: number): number {
  const at = Math.log(needed / usable / LOW) / Math.log(HIGH / LOW);
  return Math.min(1, Math.max(0, at));
}

export function fillOf(needed: number, usable: number, ground: Ground): string {
  return ramp(shade(needed, usable), ground);
}

export type Sign = "limit" | "planned" | "other" | "none" | "unknown";

export interface Entry {
  sign: Sign;
  word: string;
}

function textRoom(pen: Pen, colour: Colour): void {
  pen.font = FONT.replace("12px", "11px");
  pen.fillStyle = colour("soft");
  pen.textBaseline = "top";
}

// Entries by line.
export function legendLines(entries: readonly Entry[], width: number): Entry[][] {
  const lines: Entry[][] = [];
  let x = Number.POSITIVE_INFINITY;
  for (const entry of entries) {
    const needed = SWATCH + 6 + textWidth(entry.word, 11) + 14;
    if (x + needed > width) {
      lines.push([]);
      x = 0;
    }
    lines.at(-1)?.push(entry);
    x += needed;
  }
  return lines;
}

export function legendHeight(entries: readonly Entry[], width: number): number {
  return BAR_HEIGHT + legendLines(entries, width).length * LINE;
}

export function drawLegend(pen: Pen, box: Box, entries: readonly Entry[], usable: number, gpu: string, ground: Ground, colour: Colour): void {
  drawBar(pen, { ...box, width: Math.min(320, box.width) }, usable, gpu, ground, colour);
  legendLines(entries, box.width).forEach((line, index) => {
    let left = box.left;
    const top = box.top + BAR_HEIGHT + index * LINE;
    for (const { sign, word } of line) {
      drawSign(pen, { left, top, width: SWATCH, height: 13 }, sign, ground, colour);
      textRoom(pen, colour);
      pen.textAlign = "left";
      pen.textBaseline = "middle";
      pen.fillText(fitText(word, box.width - SWATCH - 6, 11), left + SWATCH + 6, top + 7);
      left += SWATCH + 6 + textWidth(word, 11) + 14;
    }
  });
}

function drawBar(pen: Pen, { left, top, width }: Box, usable: number, gpu: string, ground: Ground, colour: Colour): void {
  textRoom(pen, colour);
  pen.textAlign = "left";
  pen.fillText(fitText(`Required memory (100 %: limit of ${gpu})`, width, 11), left, top);
  const steps = rampSteps(36, ground);
  const each = width / steps.length;
  steps.forEach((step, index) => {
    pen.fillStyle = step;
    pen.fillRect(left + index * each, top + 15, each + 0.5, 9);
  });
  TICKS.forEach((tick, index) => {
    const x = left + shade(tick, 1) * width;
    const [first, last] = [index === 0, index === TICKS.length - 1];
    const beyond = first ? "≤ " : last ? "≥ " : "";
    pen.fillStyle = colour("text");
    if (tick === 1) pen.fillRect(x - 1, top + 12, 2, 15);
    textRoom(pen, colour);
    pen.textAlign = first ? "left" : last ? "right" : "center";
    pen.fillText(`${beyond}${percent(tick)}`, x, top + 28);
    pen.fillText(bytes(tick * usable), x, top + 41);
  });
}

function drawSign(pen: Pen, box: Box, sign: Sign, ground: Ground, colour: Colour): void {
  if (sign === "none" || sign === "unknown") {
    const fill = sign === "none" ? ramp(shade(1.5, 1), ground) : colour("sunken");
    pen.fillStyle = fill;
    pen.fillRect(box.left, box.top, box.width, box.height);
    if (sign === "none") hatch(pen, box, inkOn(fill));
    else dots(pen, box, colour("soft"));
    return;
  }
  pen.strokeStyle = colour("text");
  pen.lineWidth = LINES[sign].width;
  pen.setLineDash(LINES[sign].dash);
  pen.beginPath();
  pen.moveTo(box.left, box.top + box.height / 2);
  pen.lineTo(box.left + box.width, box.top + box.height / 2);
  pen.stroke();
  pen.setLineDash([]);
}

export const LINES = {
  limit: { width: 3, dash: [] as number[] },
  planned: { width: 2.4, dash: [7, 5] },
  other: { width: 1.6, dash: [] as number[] },
};

// Black or white, whichever is read better on a colour "#rrggbb".
export function inkOn(colour: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
}

function pattern(pen: Pen, box: Box, ink: string, draw: () => void): void {
  pen.save();
  pen.beginPath();
  pen.rect(box.left, box.top, box.width, box.height);
  pen.clip();
  pen.strokeStyle = ink;
  pen.beginPath();
  draw();
  pen.stroke();
  pen.restore();
  pen.setLineDash([]);
}

// What does not fit.
export function hatch(pen: Pen, box: Box, ink: string): void {
  pattern(pen, box, ink, () => {
    pen.globalAlpha = 0.45;
    pen.lineWidth = 1;
    for (let at = -box.height; at < box.width; at += 7) {
      pen.moveTo(box.left + at, box.top + box.height);
      pen.lineTo(box.left + at + box.height, box.top);
    }
  });
}

// What is unknown.
export function dots(pen: Pen, box: Box, ink: string): void {
  pattern(pen, box, ink, () => {
    pen.lineWidth = 1.6;
    pen.setLineDash([1.6, 4.4]);
    for (let row = 0; 3 + row * 5 < box.height; row += 1) {
      pen.moveTo(box.left + (row % 2 === 0 ? 1 : 4), box.top + 3 + row * 5);
      pen.lineTo(box.left + box.width, box.top + 3 + row * 5);
    }
  });
}
