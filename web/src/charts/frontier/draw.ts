// The frontier's picture: required memory as colour, limits of GPUs as lines, trials as marks.
import { scalarText, type Scalar } from "../../api/values";
import { bytes, number } from "../../format/format";
import { LOOKS, type Letter } from "../../parts/states";
import { drawAxes, drawColourBar, innerBox, share, within, type Box, type Scale } from "../axes";
import type { Colour } from "../colours";
import { drawMark } from "../mark";
import { FONT, textWidth, type Pen } from "../pen";
import { ramp, rampSteps, type Ground } from "../ramp";
import { labelPlace, limitLines, plannedLines, type Segment } from "./contour";
import { fitOf, indexOf, type Grid } from "./grid";

export interface Mark {
  number: number; // of the trial
  letter: Letter;
  x: number; // places among the axis's values
  y: number;
}

export interface Picture {
  grid: Grid;
  words: string[]; // of the GPUs
  focus: number; // the GPU whose misfits are hatched
  marks: readonly Mark[];
  ground: Ground;
  at: number | undefined; // the cell that is pointed at
}

const BAR_ROOM = 34;

export interface Frame {
  box: Box;
  x: Scale;
  y: Scale;
}

function axisWords(values: readonly Scalar[]): string[] {
  return values.map((value) => (typeof value === "number" ? number(value, 4) : scalarText(value)));
}

export function frameOf(grid: Grid, width: number, height: number): Frame {
  const x: Scale = { kind: "choice", choices: axisWords(grid.xs) };
  const y: Scale = { kind: "choice", choices: axisWords(grid.ys) };
  return { box: innerBox(width, height - BAR_ROOM, y), x, y };
}

export function toX({ box, x }: Frame, place: number): number {
  return box.left + share(x, place) * box.width;
}

export function toY({ box, y }: Frame, place: number): number {
  return box.top + box.height - share(y, place) * box.height;
}

// Column and row of the cell under a point.
export function cellAt(grid: Grid, { box }: Frame, px: number, py: number): { column: number; row: number } | undefined {
  const column = Math.floor(((px - box.left) / box.width) * grid.xs.length);
  const row = Math.floor(((box.top + box.height - py) / box.height) * grid.ys.length);
  const inside = column >= 0 && column < grid.xs.length && row >= 0 && row < grid.ys.length;
  return inside ? { column, row } : undefined;
}

export interface Range {
  low: number;
  high: number;
}

export function neededRange(grid: Grid): Range | undefined {
  const known = grid.needed.filter((needed) => needed > 0);
  return known.length === 0 ? undefined : { low: Math.min(...known), high: Math.max(...known) };
}

// Sizes differ by factors, so that colours follow the logarithm.
export function shade(needed: number, { low, high }: Range): number {
  return high > low ? Math.log(needed / low) / Math.log(high / low) : 0.5;
}

// Black or white, whichever is read better on a colour "#rrggbb".
export function inkOn(colour: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
}

export function drawFrontier(pen: Pen, width: number, height: number, colour: Colour, picture: Picture): void {
  const { grid, ground } = picture;
  const frame = frameOf(grid, width, height);
  const range = neededRange(grid);
  drawAxes(pen, frame.box, frame.x, frame.y, { x: grid.x, y: grid.y, xTicks: frame.box.width / 90, yTicks: frame.box.height / 24 }, colour);
  if (range === undefined) return;
  within(pen, frame.box, () => {
    drawCells(pen, frame, picture, range, colour);
    drawLines(pen, frame, picture, colour);
    drawMarks(pen, frame, picture, colour);
    if (picture.at !== undefined) outline(pen, frame, grid, picture.at, colour);
  });
  drawLabels(pen, frame, picture, colour);
  const bar = { left: frame.box.left, top: frame.box.top + frame.box.height + 46, width: Math.min(300, frame.box.width), height: 9 };
  drawColourBar(pen, bar, rampSteps(24, ground), bytes(range.low), bytes(range.high), "required", colour);
}

function cellSize(frame: Frame, grid: Grid) {
  return { w: frame.box.width / grid.xs.length, h: frame.box.height / grid.ys.length };
}

function drawCells(pen: Pen, frame: Frame, { grid, focus, ground }: Picture, range: Range, colour: Colour): void {
  const { w, h } = cellSize(frame, grid);
  const gpu = grid.gpus[focus];
  for (let row = 0; row < grid.ys.length; row += 1) {
    for (let column = 0; column < grid.xs.length; column += 1) {
      const index = indexOf(grid, column, row);
      const needed = grid.needed[index] ?? 0;
      const fill = needed > 0 ? ramp(shade(needed, range), ground) : colour("sunken");
      const [left, top] = [toX(frame, column - 0.5), toY(frame, row + 0.5)];
      pen.fillStyle = fill;
      pen.fillRect(left, top, w + 0.5, h + 0.5);
      const ink = needed > 0 ? inkOn(fill) : colour("soft");
      if (gpu !== undefined && fitOf(grid, gpu, index) === "none") hatch(pen, left, top, w, h, ink);
      writeCell(pen, needed, left, top, w, h, fill, ink);
    }
  }
}

// The figure stands in the upper part, below which marks have room.
function writeCell(pen: Pen, needed: number, left: number, top: number, w: number, h: number, fill: string, ink: string): void {
  if (w < 46 || h < 15) return;
  const word = needed > 0 ? bytes(needed).replace("iB", "") : "?";
  const y = h >= 30 ? top + 9 : top + h / 2;
  const half = textWidth(word, 11) / 2 + 2;
  pen.fillStyle = fill;
  pen.fillRect(left + w / 2 - half, y - 6, 2 * half, 12);
  pen.fillStyle = ink;
  pen.font = FONT.replace("12px", "11px");
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(word, left + w / 2, y);
}

function hatch(pen: Pen, left: number, top: number, w: number, h: number, ink: string): void {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, w, h);
  pen.clip();
  pen.globalAlpha = 0.45;
  pen.strokeStyle = ink;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = -h; at < w; at += 7) {
    pen.moveTo(left + at, top + h);
    pen.lineTo(left + at + h, top);
  }
  pen.stroke();
  pen.restore();
}

function drawLines(pen: Pen, frame: Frame, { grid, focus }: Picture, colour: Colour): void {
  grid.gpus.forEach((gpu, index) => {
    const strong = index === focus;
    stroke(pen, frame, limitLines(grid, gpu.usable), [], strong ? 3 : 1.6, colour);
    if (strong) stroke(pen, frame, plannedLines(grid, gpu), [7, 5], 2.4, colour);
  });
}

function stroke(pen: Pen, frame: Frame, lines: readonly Segment[], dash: number[], width: number, colour: Colour): void {
  const passes: [string, number, number[]][] = [
    [colour("surface"), width + 2.5, []],
    [colour("text"), width, dash],
  ];
  for (const [style, size, pattern] of passes) {
    pen.strokeStyle = style;
    pen.lineWidth = size;
    pen.lineCap = "round";
    pen.setLineDash(pattern);
    pen.beginPath();
    for (const [x1, y1, x2, y2] of lines) {
      pen.moveTo(toX(frame, x1), toY(frame, y1));
      pen.lineTo(toX(frame, x2), toY(frame, y2));
    }
    pen.stroke();
  }
  pen.setLineDash([]);
}

function drawMarks(pen: Pen, frame: Frame, { marks }: Picture, colour: Colour): void {
  for (const { letter, x, y } of marks) {
    const look = LOOKS[letter];
    const [px, py] = [toX(frame, x), toY(frame, y)];
    pen.beginPath();
    pen.arc(px, py, 6, 0, 2 * Math.PI);
    pen.fillStyle = colour("surface");
    pen.fill();
    pen.lineWidth = 2;
    pen.fillStyle = colour(`state-${look.colour}`);
    pen.strokeStyle = colour(`state-${look.colour}`);
    drawMark(pen, look.shape, px, py, 7);
  }
}

function outline(pen: Pen, frame: Frame, grid: Grid, index: number, colour: Colour): void {
  const { w, h } = cellSize(frame, grid);
  const column = index % grid.xs.length;
  const row = Math.floor(index / grid.xs.length);
  pen.beginPath();
  pen.rect(toX(frame, column - 0.5), toY(frame, row + 0.5), w, h);
  pen.strokeStyle = colour("best");
  pen.lineWidth = 3;
  pen.stroke();
}

// Names of the lines, each below the one before where they would lie on each other.
function drawLabels(pen: Pen, frame: Frame, { grid, words, focus }: Picture, colour: Colour): void {
  const { box } = frame;
  const taken: Box[] = [];
  const write = (place: [number, number] | undefined, word: string, strong: boolean) => {
    if (place === undefined) return;
    const width = textWidth(word, 11) + 8;
    const left = Math.max(box.left, Math.min(box.left + box.width - width, toX(frame, place[0]) - width));
    let top = Math.max(box.top, Math.min(box.top + box.height - 16, toY(frame, place[1]) - 8));
    while (taken.some((other) => Math.abs(other.top - top) < 17 && left < other.left + other.width && other.left < left + width)) top += 17;
    taken.push({ left, top, width, height: 16 });
    pen.fillStyle = strong ? colour("text") : colour("surface");
    pen.fillRect(left, top, width, 16);
    pen.fillStyle = strong ? colour("surface") : colour("text");
    pen.font = FONT.replace("12px", "11px");
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(word, left + 4, top + 8);
  };
  grid.gpus.forEach((gpu, index) => {
    write(labelPlace(limitLines(grid, gpu.usable)), words[index] ?? "", index === focus);
    if (index === focus) write(labelPlace(plannedLines(grid, gpu)), `${words[index] ?? ""}, smaller micro-batches`, true);
  });
}
