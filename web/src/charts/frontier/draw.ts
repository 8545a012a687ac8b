// The frontier's picture: required memory as colour, limits of GPUs as lines, trials as marks.
import { scalarText, type Scalar } from "../../api/values";
import { bytes, number } from "../../format/format";
import { LOOKS, type Letter } from "../../parts/states";
import { drawAxes, innerBox, share, within, type Box, type Scale } from "../axes";
import type { Colour } from "../colours";
import { drawMark } from "../mark";
import { FONT, textWidth, type Pen } from "../pen";
import type { Ground } from "../ramp";
import { limitLines, plannedLines, type Segment } from "./contour";
import { fitOf, type Grid } from "./grid";
import { LABEL_HEIGHT, placeLabels, STRIP, type Wanted } from "./labels";
import { dots, drawLegend, fillOf, hatch, inkOn, legendHeight, LINES, type Entry } from "./legend";

export interface Mark {
  number: number; // of the trial
  letter: Letter;
  x: number; // places among the axis's values
  y: number;
}

// What the room of the picture depends on.
export interface View {
  grid: Grid;
  words: readonly string[]; // of the GPUs
  focus: number; // the GPU that colours and hatching are about
}

export interface Picture extends View {
  marks: readonly Mark[];
  ground: Ground;
  at: number | undefined; // the cell that is pointed at
}

// Below the cells, ticks and the axis's name; of it, innerBox leaves all but GAP free.
const AXIS = 48;
const GAP = 6;

export interface Frame {
  box: Box;
  x: Scale;
  y: Scale;
}

function axisWords(values: readonly Scalar[]): string[] {
  return values.map((value) => (typeof value === "number" ? number(value, 4) : scalarText(value)));
}

// What the picture has of lines and patterns.
function entriesOf({ grid, words, focus }: View): Entry[] {
  const gpu = grid.gpus[focus];
  if (gpu === undefined) return [];
  const word = words[focus] ?? "";
  const fits = new Set(grid.needed.map((_, index) => fitOf(gpu, index)));
  const entries: (Entry | false)[] = [
    limitLines(grid, gpu).length > 0 && { sign: "limit", word: `limit of ${word}, full batch` },
    plannedLines(grid, gpu).length > 0 && { sign: "planned", word: `limit of ${word}, smaller micro-batches` },
    grid.gpus.some((other, index) => index !== focus && limitLines(grid, other).length > 0) && { sign: "other", word: "limit of another GPU, full batch" },
    fits.has("none") && { sign: "none", word: `does not fit ${word}` },
    fits.has("unknown") && { sign: "unknown", word: `unknown for ${word}` },
  ];
  return entries.filter((entry) => entry !== false);
}

// Of the whole picture: wide cells are high enough for a figure and marks.
export function pictureHeight(view: View, width: number): number {
  const cells = Math.min(526, Math.max(266, Math.min(width * 0.62, view.grid.ys.length * 46 + 50)));
  return cells + roomOf(view, width);
}

// Of what is above and below the chart.
function roomOf(view: View, width: number): number {
  return STRIP + GAP + legendHeight(entriesOf(view), legendWidth(width));
}

function legendWidth(width: number): number {
  return width - 28;
}

export function frameOf(view: View, width: number, height: number): Frame {
  const x: Scale = { kind: "choice", choices: axisWords(view.grid.xs) };
  const y: Scale = { kind: "choice", choices: axisWords(view.grid.ys) };
  const box = innerBox(width, height - roomOf(view, width), y);
  return { box: { ...box, top: box.top + STRIP }, x, y };
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

export function drawFrontier(pen: Pen, width: number, height: number, colour: Colour, picture: Picture): void {
  const { grid, ground, words, focus } = picture;
  const frame = frameOf(picture, width, height);
  const gpu = grid.gpus[focus];
  drawAxes(pen, frame.box, frame.x, frame.y, { x: grid.x, y: grid.y, xTicks: frame.box.width / 90, yTicks: frame.box.height / 24 }, colour);
  if (gpu === undefined) return;
  within(pen, frame.box, () => {
    drawCells(pen, frame, picture, colour);
    drawLines(pen, frame, picture, colour);
    drawMarks(pen, frame, picture, colour);
    if (picture.at !== undefined) outline(pen, frame, grid, picture.at, colour);
  });
  drawLabels(pen, frame, picture, colour);
  const below = frame.box.top + frame.box.height + AXIS;
  drawLegend(pen, { left: 18, top: below, width: legendWidth(width), height: 0 }, entriesOf(picture), gpu.usable, words[focus] ?? "", ground, colour);
}

function cellSize(frame: Frame, grid: Grid) {
  return { w: frame.box.width / grid.xs.length, h: frame.box.height / grid.ys.length };
}

function drawCells(pen: Pen, frame: Frame, { grid, focus, ground }: Picture, colour: Colour): void {
  const { w, h } = cellSize(frame, grid);
  const gpu = grid.gpus[focus];
  if (gpu === undefined) return;
  grid.needed.forEach((needed, index) => {
    const fit = fitOf(gpu, index);
    const shown = needed > 0 && fit !== "unknown";
    const fill = shown ? fillOf(needed, gpu.usable, ground) : colour("sunken");
    const ink = shown ? inkOn(fill) : colour("soft");
    const box = cellBox(frame, grid, index);
    pen.fillStyle = fill;
    pen.fillRect(box.left, box.top, w + 0.5, h + 0.5);
    if (fit === "none") hatch(pen, box, ink);
    if (fit === "unknown") dots(pen, box, ink);
    const figure = figureBox(grid, box, index);
    if (figure === undefined) return;
    pen.fillStyle = fill;
    pen.fillRect(figure.left, figure.top, figure.width, figure.height);
    pen.fillStyle = ink;
    pen.font = FONT.replace("12px", "11px");
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(shown ? figureWord(needed) : "?", box.left + w / 2, figure.top + 6);
  });
}

function cellBox(frame: Frame, grid: Grid, index: number): Box {
  const { w, h } = cellSize(frame, grid);
  const [column, row] = [index % grid.xs.length, Math.floor(index / grid.xs.length)];
  return { left: toX(frame, column - 0.5), top: toY(frame, row + 0.5), width: w, height: h };
}

function figureWord(needed: number): string {
  return needed > 0 ? bytes(needed).replace("iB", "") : "?";
}

// The figure stands in the upper part, below which marks have room; small cells have none.
function figureBox(grid: Grid, { left, top, width, height }: Box, index: number): Box | undefined {
  if (width < 46 || height < 15) return undefined;
  const half = textWidth(figureWord(grid.needed[index] ?? 0), 11) / 2 + 2;
  const middle = height >= 30 ? top + 9 : top + height / 2;
  return { left: left + width / 2 - half, top: middle - 6, width: 2 * half, height: 12 };
}

function drawLines(pen: Pen, frame: Frame, { grid, focus }: Picture, colour: Colour): void {
  grid.gpus.forEach((gpu, index) => {
    stroke(pen, frame, limitLines(grid, gpu), index === focus ? LINES.limit : LINES.other, colour);
    if (index === focus) stroke(pen, frame, plannedLines(grid, gpu), LINES.planned, colour);
  });
}

function stroke(pen: Pen, frame: Frame, lines: readonly Segment[], { dash, width }: { dash: number[]; width: number }, colour: Colour): void {
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
  const { left, top, width, height } = cellBox(frame, grid, index);
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.strokeStyle = colour("best");
  pen.lineWidth = 3;
  pen.stroke();
}

const MARK = 14; // pixels, with the ground around it

function drawLabels(pen: Pen, frame: Frame, { grid, words, focus, marks }: Picture, colour: Colour): void {
  const wanted = (lines: readonly Segment[], word: string): Wanted => ({
    word,
    width: textWidth(word, 11) + 8,
    points: lines.flatMap(([x1, y1, x2, y2]) => [[x1, y1], [x2, y2], [(x1 + x2) / 2, (y1 + y2) / 2]] as const).map(([x, y]) => [toX(frame, x), toY(frame, y)]),
  });
  const names = grid.gpus.map((gpu, index) => wanted(limitLines(grid, gpu), words[index] ?? ""));
  const [strong] = names.splice(focus, 1);
  const placed = placeLabels(
    strong === undefined ? names : [strong, ...names],
    frame.box,
    marks.map(({ x, y }) => ({ left: toX(frame, x) - MARK / 2, top: toY(frame, y) - MARK / 2, width: MARK, height: MARK })),
    grid.needed.map((_, index) => figureBox(grid, cellBox(frame, grid, index), index)).filter((box) => box !== undefined),
  );
  for (const { word, box } of placed) {
    pen.fillStyle = word === strong?.word ? colour("text") : colour("surface");
    pen.fillRect(box.left, box.top, box.width, box.height);
    pen.fillStyle = word === strong?.word ? colour("surface") : colour("text");
    pen.font = FONT.replace("12px", "11px");
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(word, box.left + 4, box.top + LABEL_HEIGHT / 2);
  }
}
