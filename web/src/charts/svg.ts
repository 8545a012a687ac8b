// A pen that writes SVG.
import type { Pen } from "./pen";

type Matrix = [number, number, number, number, number, number];

// What save() keeps. `clipped`: the id of a clipPath; "": none.
type State = Pick<Pen, "fillStyle" | "strokeStyle" | "lineWidth" | "lineCap" | "lineJoin" | "globalAlpha" | "font" | "textAlign" | "textBaseline"> & {
  dash: number[];
  matrix: Matrix;
  clipped: string;
};

const ANCHORS: Partial<Record<CanvasTextAlign, string>> = { center: "middle", right: "end", end: "end" };
// How far below the place that a canvas is given the baseline of the letters is, in font sizes.
const BASELINES: Partial<Record<CanvasTextBaseline, number>> = { top: 0.8, hanging: 0.8, middle: 0.35, bottom: -0.2 };

// Characters that XML does not have, even escaped.
const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function escapeXml(text: string): string {
  return text
    .replace(NOT_XML, "\ufffd")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}

function round(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function paint(style: Pen["fillStyle"]): string {
  return typeof style === "string" ? style : "#888";
}

export class SvgPen implements Pen {
  fillStyle: Pen["fillStyle"] = "#000";
  strokeStyle: Pen["strokeStyle"] = "#000";
  lineWidth = 1;
  lineCap: CanvasLineCap = "butt";
  lineJoin: CanvasLineJoin = "miter";
  globalAlpha = 1;
  font = "10px sans-serif";
  textAlign: CanvasTextAlign = "start";
  textBaseline: CanvasTextBaseline = "alphabetic";
  private dash: number[] = [];
  private matrix: Matrix = [1, 0, 0, 1, 0, 0];
  private clipped = "";
  private readonly parts: string[] = [];
  private readonly stack: State[] = [];
  private path: string[] = [];
  private clips = 0;

  constructor(
    private readonly width: number,
    private readonly height: number,
  ) {}

  save(): void {
    const { fillStyle, strokeStyle, lineWidth, lineCap, lineJoin, globalAlpha, font, textAlign, textBaseline } = this;
    const hidden = { dash: this.dash, matrix: this.matrix, clipped: this.clipped };
    this.stack.push({ fillStyle, strokeStyle, lineWidth, lineCap, lineJoin, globalAlpha, font, textAlign, textBaseline, ...hidden });
  }

  restore(): void {
    const state = this.stack.pop();
    if (state !== undefined) Object.assign(this, state);
  }

  translate(x: number, y: number): void {
    const [a, b, c, d, e, f] = this.matrix;
    this.matrix = [a, b, c, d, a * x + c * y + e, b * x + d * y + f];
  }

  rotate(angle: number): void {
    const [a, b, c, d, e, f] = this.matrix;
    const cos = Math.cos(angle);
    const sin = Math.sin(angle);
    this.matrix = [a * cos + c * sin, b * cos + d * sin, c * cos - a * sin, d * cos - b * sin, e, f];
  }

  // By the same factor in both directions, as circles and letters have to stay what they are.
  scale(factor: number): void {
    const [a, b, c, d, e, f] = this.matrix;
    this.matrix = [a * factor, b * factor, c * factor, d * factor, e, f];
  }

  beginPath(): void {
    this.path = [];
  }

  moveTo(x: number, y: number): void {
    this.path.push(`M${this.place(x, y)}`);
  }

  lineTo(x: number, y: number): void {
    this.path.push(`${this.path.length === 0 ? "M" : "L"}${this.place(x, y)}`);
  }

  // A whole circle is two arcs, since SVG's has to end elsewhere than it begins.
  arc(x: number, y: number, radius: number, start: number, end: number, backwards = false): void {
    const turn = backwards ? start - end : end - start;
    const at = (angle: number) => this.place(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
    const r = this.length(Math.max(0, radius));
    const sweep = backwards ? 0 : 1;
    this.path.push(`${this.path.length === 0 ? "M" : "L"}${at(start)}`);
    if (turn >= 2 * Math.PI - 1e-9) {
      this.path.push(`A${r} ${r} 0 1 ${sweep} ${at(start + Math.PI)}`, `A${r} ${r} 0 1 ${sweep} ${at(start)}`);
    } else {
      this.path.push(`A${r} ${r} 0 ${turn > Math.PI ? 1 : 0} ${sweep} ${at(end)}`);
    }
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path.push(`M${this.place(x, y)}L${this.place(x + width, y)}L${this.place(x + width, y + height)}L${this.place(x, y + height)}Z`);
  }

  closePath(): void {
    if (this.path.length > 0) this.path.push("Z");
  }

  fill(): void {
    this.write(`fill="${escapeXml(paint(this.fillStyle))}"`);
  }

  stroke(): void {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.map((part) => this.length(part)).join(" ")}"` : "";
    const ends = `${this.lineCap === "butt" ? "" : ` stroke-linecap="${this.lineCap}"`}${this.lineJoin === "miter" ? "" : ` stroke-linejoin="${this.lineJoin}"`}`;
    this.write(`fill="none" stroke="${escapeXml(paint(this.strokeStyle))}" stroke-width="${this.length(this.lineWidth)}"${dash}${ends}`);
  }

  clip(): void {
    this.clips += 1;
    const id = `clip${this.clips}`;
    this.parts.push(`<clipPath id="${id}"${this.clipping()}><path d="${this.path.join("")}"/></clipPath>`);
    this.clipped = id;
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    const before = this.path;
    this.path = [];
    this.rect(x, y, width, height);
    this.fill();
    this.path = before;
  }

  fillText(text: string, x: number, y: number): void {
    const size = Number.parseFloat(/([\d.]+)px/.exec(this.font)?.[1] ?? "10");
    const family = /px\s+(.*)$/.exec(this.font)?.[1] ?? "sans-serif";
    const weight = /^(bold|[1-9]00)\b/.exec(this.font)?.[1];
    const factor = this.factor();
    const [a, b, c, d] = this.matrix.map((part) => part / factor) as Matrix;
    const baseline = y + (BASELINES[this.textBaseline] ?? 0) * size;
    const turned = b === 0 && a > 0 ? "" : ` transform="matrix(${[a, b, c, d].map(round).join(" ")} ${this.place(x, baseline)})"`;
    const [at_x, at_y] = turned === "" ? this.place(x, baseline).split(" ") : ["0", "0"];
    const anchor = ANCHORS[this.textAlign];
    this.parts.push(
      `<text x="${at_x}" y="${at_y}"${turned} font-family="${escapeXml(family)}" font-size="${this.length(size)}"` +
        `${weight === undefined ? "" : ` font-weight="${weight}"`}${anchor === undefined ? "" : ` text-anchor="${anchor}"`}` +
        ` fill="${escapeXml(paint(this.fillStyle))}"${this.shared()}>${escapeXml(text)}</text>`,
    );
  }

  setLineDash(segments: Iterable<number>): void {
    this.dash = [...segments];
  }

  // The whole file. `title` is what programs say that read it aloud.
  text(title: string, scale = 1): string {
    const size = `width="${round(this.width * scale)}" height="${round(this.height * scale)}" viewBox="0 0 ${round(this.width)} ${round(this.height)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img"><title>${escapeXml(title)}</title>${this.parts.join("\n")}</svg>\n`;
  }

  private place(x: number, y: number): string {
    const [a, b, c, d, e, f] = this.matrix;
    return `${round(a * x + c * y + e)} ${round(b * x + d * y + f)}`;
  }

  private factor(): number {
    return Math.hypot(this.matrix[0], this.matrix[1]) || 1;
  }

  private length(value: number): string {
    return round(value * this.factor());
  }

  private clipping(): string {
    return this.clipped === "" ? "" : ` clip-path="url(#${this.clipped})"`;
  }

  private shared(): string {
    return `${this.globalAlpha === 1 ? "" : ` opacity="${round(this.globalAlpha)}"`}${this.clipping()}`;
  }

  private write(look: string): void {
    if (this.path.length > 0) this.parts.push(`<path d="${this.path.join("")}" ${look}${this.shared()}/>`);
  }
}
