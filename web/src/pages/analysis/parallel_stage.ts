// The two layers of lines and the brushes of parallel coordinates on the screen. It works on the
// elements themselves: a brush that is dragged does not render the page anew.
import type { Colour } from "../../charts/colours";
import { prepare } from "../../charts/canvas";
import { markShown, type Range, type Ranges } from "./filter";
import { Painter } from "./painter";
import { drawAxisTexts } from "./parallel_axes";
import { drawLines, extentOf, layOut, lineAlpha, rangeOf, shownLines, type Layout, type Lines } from "./parallel_lines";
import type { Table } from "./table";

export interface StageElements {
  base: HTMLCanvasElement;
  top: HTMLCanvasElement;
  texts: HTMLCanvasElement;
  strips: HTMLElement[]; // one for each axis: .brush, then the sliders of its lower and upper end
}

export interface StageInput {
  table: Table;
  lines: Lines;
  width: number;
  height: number;
  styles: readonly string[];
  colour: Colour;
}

export class Stage {
  private layout: Layout;
  private ranges: Map<string, Range>;
  private mask: Uint8Array;
  private readonly basePainter = new Painter();
  private readonly topPainter = new Painter();
  private asked = 0;
  shown = 0;

  constructor(
    private readonly elements: StageElements,
    private readonly input: StageInput,
    ranges: Ranges,
    private readonly changed: (shown: number) => void,
  ) {
    this.ranges = new Map(ranges);
    this.mask = new Uint8Array(input.table.rows);
    this.layout = layOut(input.lines.axes.length, input.width, input.height);
    this.drawBase();
    this.paint();
  }

  stop(): void {
    this.basePainter.stop();
    this.topPainter.stop();
    cancelAnimationFrame(this.asked);
  }

  current(): Ranges {
    return this.ranges;
  }

  set(ranges: Ranges): void {
    this.ranges = new Map(ranges);
    this.paint();
  }

  extent(axis: number): [number, number] {
    const found = this.input.lines.axes[axis];
    return found === undefined ? [0, 1] : extentOf(found, this.ranges.get(found.column.name));
  }

  // Brushes an axis from share `low` to `high`; drawn with the next frame.
  brush(axis: number, low: number, high: number): void {
    const found = this.input.lines.axes[axis];
    if (found === undefined) return;
    const range = rangeOf(found, Math.max(0, Math.min(low, high)), Math.min(1, Math.max(low, high)));
    if (range === undefined) this.ranges.delete(found.column.name);
    else this.ranges.set(found.column.name, range);
    if (this.asked !== 0) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.paint();
    });
  }

  // A key moves an end by at least a choice, as less would choose the same.
  leastStep(axis: number): number {
    const scale = this.input.lines.axes[axis]?.scale;
    return scale?.kind === "choice" ? 1 / Math.max(1, scale.choices.length) : 0;
  }

  // The share of an axis's height that a pointer is at.
  shareAt(axis: number, clientY: number): number {
    const strip = this.elements.strips[axis];
    if (strip === undefined) return 0;
    const { bottom, height } = strip.getBoundingClientRect();
    return Math.min(1, Math.max(0, (bottom - clientY) / height));
  }

  private drawBase(): void {
    const { lines, width, height, colour } = this.input;
    const base = prepare(this.elements.base, { width, height });
    const texts = prepare(this.elements.texts, { width, height });
    if (base === null || texts === null) return;
    base.globalAlpha = 0.5;
    const line = [colour("line")];
    this.basePainter.start({ count: lines.count, draw: (from, to) => drawLines(base, lines, this.layout, lines.order, from, to, line) });
    drawAxisTexts(texts, lines, this.layout, colour);
  }

  private paint(): void {
    const { table, lines, width, height, styles } = this.input;
    const columns = lines.axes.map(({ column }) => column);
    this.shown = markShown(table, columns, this.ranges, this.mask);
    const shown = shownLines(lines, this.mask);
    const top = prepare(this.elements.top, { width, height });
    if (top === null) return;
    top.lineWidth = 1;
    top.globalAlpha = lineAlpha(shown.length);
    this.topPainter.start({ count: shown.length, draw: (from, to) => drawLines(top, lines, this.layout, shown, from, to, styles) });
    this.placeBrushes();
    this.changed(this.shown);
  }

  private placeBrushes(): void {
    const { box, xs } = this.layout;
    this.input.lines.axes.forEach((axis, index) => {
      const strip = this.elements.strips[index];
      if (strip === undefined) return;
      const range = this.ranges.get(axis.column.name);
      const [low, high] = extentOf(axis, range);
      Object.assign(strip.style, { left: `${xs[index]}px`, top: `${box.top}px`, height: `${box.height}px` });
      const [brush, lower, upper] = strip.children as unknown as Iterable<HTMLElement>;
      if (brush) Object.assign(brush.style, { bottom: `${low * 100}%`, height: `${(high - low) * 100}%`, visibility: range ? "visible" : "hidden" });
      for (const [handle, at] of [[lower, low], [upper, high]] as const) {
        if (handle === undefined) continue;
        handle.style.bottom = `${at * 100}%`;
        handle.setAttribute("aria-valuenow", String(Math.round(at * 100)));
        handle.setAttribute("aria-valuetext", endText(axis.column.choices, range, handle === lower));
      }
    });
  }
}

// What the end of a brush says aloud.
function endText(choices: readonly string[] | undefined, range: Range | undefined, lower: boolean): string {
  if (range === undefined) return lower ? "no lower limit" : "no upper limit";
  if (choices !== undefined) return [...(range.chosen ?? [])].map((place) => choices[place]).join(", ");
  const end = lower ? range.low : range.high;
  return Number.isFinite(end) ? String(end) : lower ? "no lower limit" : "no upper limit";
}
