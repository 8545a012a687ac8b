// Required memory over two parameters: cells, and what fits them.
import type { Domain, GetMemoryFrontierResponse, Parameter } from "../../api/messages";
import { int, scalar, scalarText, type Scalar } from "../../api/values";
import { bytes, plural } from "../../format/format";

export interface GridGpu {
  capacity: number; // bytes
  usable: number;
  micro: number[]; // by cell: the micro-batch that is planned; 0: none fits, or nothing is known
  verdicts: string; // by cell: a letter of FrontierGpu
}

export interface Grid {
  x: string;
  y: string;
  xs: Scalar[];
  ys: Scalar[];
  // Whether an axis has values between those of its cells.
  smooth: { x: boolean; y: boolean };
  needed: number[]; // by cell: for each y from the first, all x; 0: unknown
  gpus: GridGpu[];
}

// Choices have nothing between them, nor have numbers that are all shown.
export function isSmooth(domain: Domain | undefined, shown: number): boolean {
  const range = domain?.float_domain ?? domain?.int_domain;
  if (range === undefined) return false;
  const step = Number(range.step ?? 0) || (domain?.int_domain === undefined ? 0 : 1);
  return step === 0 || Math.floor((Number(range.high ?? 0) - Number(range.low ?? 0)) / step + 1e-9) + 1 > shown;
}

export function gridOf(answer: GetMemoryFrontierResponse, parameters: readonly Parameter[]): Grid {
  const [x, y] = [answer.x ?? "", answer.y ?? ""];
  const [xs, ys] = [(answer.x_values ?? []).map(scalar), (answer.y_values ?? []).map(scalar)];
  const domain = (of: string) => parameters.find(({ name }) => name === of)?.domain;
  return {
    x,
    y,
    xs,
    ys,
    smooth: { x: isSmooth(domain(x), xs.length), y: isSmooth(domain(y), ys.length) },
    needed: (answer.needed_bytes ?? []).map(int),
    gpus: (answer.gpus ?? []).map((gpu) => ({
      capacity: int(gpu.capacity_bytes),
      usable: int(gpu.usable_bytes),
      micro: gpu.micro_batches ?? [],
      verdicts: gpu.verdicts ?? "",
    })),
  };
}

export function indexOf(grid: Grid, column: number, row: number): number {
  return row * grid.xs.length + column;
}

export type Fit = "unknown" | "whole" | "split" | "none";

const FITS: Record<string, Fit> = { F: "whole", P: "split", N: "none" };

export function fitOf(gpu: GridGpu, index: number): Fit {
  return FITS[gpu.verdicts[index] ?? ""] ?? "unknown";
}

// "fits with the full batch", "fits with micro-batches of 64 samples", "does not fit".
export function fitWords(gpu: GridGpu, index: number): string {
  switch (fitOf(gpu, index)) {
    case "whole":
      return "fits with the full batch";
    case "split":
      return `fits with micro-batches of ${plural(gpu.micro[index] ?? 0, "sample")}`;
    case "none":
      return "does not fit";
    default:
      return "unknown, so it would be tried";
  }
}

export function neededWords(grid: Grid, index: number): string {
  const needed = grid.needed[index] ?? 0;
  return needed > 0 ? `requires ${bytes(needed)}` : "has an unknown required memory";
}

export function isNumeric(values: readonly Scalar[]): values is number[] {
  return values.every((value) => typeof value === "number");
}

// What fits of a column, in words: the largest y, or of choices those that fit.
export function largestFit(grid: Grid, gpu: GridGpu, column: number, split: boolean): string {
  const fits = grid.ys.map((_, row) => fitOf(gpu, indexOf(grid, column, row)));
  const fitting = grid.ys.filter((_, row) => fits[row] === "whole" || (split && fits[row] === "split"));
  const unknown = fits.includes("unknown");
  if (fitting.length === 0) return unknown ? "unknown" : "none";
  if (fitting.length === grid.ys.length && !isNumeric(grid.ys)) return "all";
  const words = isNumeric(grid.ys) ? scalarText(Math.max(...fitting.map(Number))) : fitting.map(scalarText).join(", ");
  return unknown ? `${words}, others unknown` : words;
}

// Where a value lies among the values of an axis, the first at 0; undefined: outside.
export function placeOf(values: readonly Scalar[], value: number | string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!isNumeric(values)) {
    const index = values.findIndex((one) => scalarText(one) === String(value));
    return index < 0 ? undefined : index;
  }
  const wanted = Number(value);
  for (let index = 0; index < values.length; index += 1) {
    const [low = 0, high] = [values[index], values[index + 1]];
    if (wanted === low) return index;
    if (high !== undefined && wanted > low && wanted < high) return index + (wanted - low) / (high - low);
  }
  return undefined;
}
