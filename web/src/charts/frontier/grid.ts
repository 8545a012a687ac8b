// Required memory over two parameters: cells, and what fits them.
import type { GetMemoryFrontierResponse } from "../../api/messages";
import { int, scalar, scalarText, type Scalar } from "../../api/values";
import { bytes, count } from "../../format/format";

export interface GridGpu {
  capacity: number; // bytes
  usable: number;
  micro: number[]; // by cell: the micro-batch that is planned; 0: none fits
}

export interface Grid {
  x: string;
  y: string;
  xs: Scalar[];
  ys: Scalar[];
  needed: number[]; // by cell: for each y from the first, all x; 0: unknown
  gpus: GridGpu[];
}

export function gridOf(answer: GetMemoryFrontierResponse): Grid {
  return {
    x: answer.x ?? "",
    y: answer.y ?? "",
    xs: (answer.x_values ?? []).map(scalar),
    ys: (answer.y_values ?? []).map(scalar),
    needed: (answer.needed_bytes ?? []).map(int),
    gpus: (answer.gpus ?? []).map((gpu) => ({
      capacity: int(gpu.capacity_bytes),
      usable: int(gpu.usable_bytes),
      micro: gpu.micro_batches ?? [],
    })),
  };
}

export function indexOf(grid: Grid, column: number, row: number): number {
  return row * grid.xs.length + column;
}

export type Fit = "unknown" | "written" | "split" | "none";

export function fitOf(grid: Grid, gpu: GridGpu, index: number): Fit {
  const needed = grid.needed[index] ?? 0;
  if (needed === 0) return "unknown";
  if ((gpu.micro[index] ?? 0) === 0) return "none";
  return needed <= gpu.usable ? "written" : "split";
}

// "fits as written", "fits with micro-batches of 64 rows", "does not fit".
export function fitWords(grid: Grid, gpu: GridGpu, index: number): string {
  const micro = gpu.micro[index] ?? 0;
  switch (fitOf(grid, gpu, index)) {
    case "written":
      return "fits as written";
    case "split":
      return `fits with micro-batches of ${count(micro)} ${micro === 1 ? "row" : "rows"}`;
    case "none":
      return "does not fit";
    default:
      return "unknown";
  }
}

export function neededWords(grid: Grid, index: number): string {
  const needed = grid.needed[index] ?? 0;
  return needed > 0 ? `requires ${bytes(needed)}` : "required memory is unknown";
}

export function isNumeric(values: readonly Scalar[]): values is number[] {
  return values.every((value) => typeof value === "number");
}

// What fits of a column: the largest y, or of choices those that fit. Undefined: nothing.
export function largestFit(grid: Grid, gpu: GridGpu, column: number, split: boolean): string | undefined {
  const fitting = grid.ys.filter((_, row) => {
    const fit = fitOf(grid, gpu, indexOf(grid, column, row));
    return fit === "written" || (split && fit === "split");
  });
  if (fitting.length === 0) return undefined;
  if (isNumeric(grid.ys)) return scalarText(Math.max(...fitting.map(Number)));
  return fitting.length === grid.ys.length ? "all" : fitting.map(scalarText).join(", ");
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
