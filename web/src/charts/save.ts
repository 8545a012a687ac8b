// Charts as files: SVG, or PNG with twice the pixels of the screen's.
import type { StateLook } from "../parts/states";
import { drawMark } from "./mark";
import { FONT, STRONG_FONT, textWidth, type Drawing, type Pen } from "./pen";
import { SvgPen } from "./svg";

// What a colour or a mark means.
export interface Key {
  word: string;
  colour: string;
  shape: StateLook["shape"];
}

const MARGIN = 12;
const LINE = 22;
const PNG_SCALE = 2;

// Charts below each other, with the title above and the keys below.
export function compose(title: string, charts: readonly Drawing[], keys: readonly Key[], colour: (name: string) => string): Drawing {
  const width = Math.max(200, ...charts.map((chart) => chart.width)) + 2 * MARGIN;
  const lines = keyLines(keys, width - 2 * MARGIN);
  const body = charts.reduce((sum, chart) => sum + chart.height, 0);
  const height = body + LINE + 2 * MARGIN + lines.length * LINE;
  return {
    width,
    height,
    draw: (pen) => {
      pen.fillStyle = colour("surface");
      pen.fillRect(0, 0, width, height);
      pen.fillStyle = colour("text");
      pen.font = STRONG_FONT;
      pen.textAlign = "left";
      pen.textBaseline = "middle";
      pen.fillText(title, MARGIN, MARGIN + LINE / 2 - 2);
      let y = MARGIN + LINE;
      for (const chart of charts) {
        pen.save();
        pen.translate(MARGIN, y);
        chart.draw(pen);
        pen.restore();
        y += chart.height;
      }
      drawKeys(pen, lines, y + LINE / 2, colour);
    },
  };
}

interface PlacedKey extends Key {
  x: number;
}

function keyLines(keys: readonly Key[], width: number): PlacedKey[][] {
  const lines: PlacedKey[][] = [];
  let x = Number.POSITIVE_INFINITY;
  for (const key of keys) {
    const needed = textWidth(key.word) + 34;
    if (x + needed > width) {
      lines.push([]);
      x = 0;
    }
    lines.at(-1)?.push({ ...key, x });
    x += needed;
  }
  return lines;
}

function drawKeys(pen: Pen, lines: readonly PlacedKey[][], top: number, colour: (name: string) => string): void {
  pen.font = FONT;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.lineWidth = 1.5;
  lines.forEach((line, index) => {
    for (const key of line) {
      const y = top + index * LINE;
      pen.fillStyle = key.colour;
      pen.strokeStyle = key.colour;
      drawMark(pen, key.shape, MARGIN + key.x + 6, y, 9);
      pen.fillStyle = colour("text");
      pen.fillText(key.word, MARGIN + key.x + 16, y);
    }
  });
}

export function svgText(drawing: Drawing, title: string): string {
  const pen = new SvgPen(drawing.width, drawing.height);
  drawing.draw(pen);
  return pen.text(title);
}

function pngBlob(drawing: Drawing): Promise<Blob> {
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(drawing.width * PNG_SCALE);
  canvas.height = Math.ceil(drawing.height * PNG_SCALE);
  const pen = canvas.getContext("2d");
  if (pen === null) return Promise.reject(new Error("This browser cannot draw pictures."));
  pen.scale(PNG_SCALE, PNG_SCALE);
  drawing.draw(pen);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob === null ? reject(new Error("This browser cannot make a PNG of this size.")) : resolve(blob)), "image/png");
  });
}

// "criteria-importance.svg": without what file systems do not take.
export function fileName(words: readonly string[], ending: string): string {
  const name = words
    .map((word) => word.normalize("NFKD").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60))
    .filter((word) => word !== "")
    .join("-");
  return `${name || "chart"}.${ending}`;
}

export type Format = "svg" | "png";

export async function download(drawing: Drawing, title: string, name: readonly string[], format: Format): Promise<void> {
  const blob = format === "svg" ? new Blob([svgText(drawing, title)], { type: "image/svg+xml" }) : await pngBlob(drawing);
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = fileName(name, format);
  link.click();
  // A browser may begin to read it after this turn.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
