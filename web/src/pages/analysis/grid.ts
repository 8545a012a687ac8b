// Values over two parameters between the trials that were run: the contour's cells.
export interface Grid {
  across: number;
  cells: Float64Array; // NaN: no trial is near enough to say anything
  low: number;
  high: number;
}

const NEAREST = 6;
const FAR = 0.16; // of the whole width or height: farther trials say nothing of a place

// Of points at (xs, ys), from 0 to 1 in both directions: each cell is the mean of the nearest points,
// weighted by how near they are. Points are found by buckets, since a grid asks for many.
export function makeGrid(xs: Float64Array, ys: Float64Array, values: Float64Array, across = 40): Grid {
  const cells = new Float64Array(across * across).fill(Number.NaN);
  const buckets = bucketPoints(xs, ys);
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (let row = 0; row < across; row += 1) {
    for (let column = 0; column < across; column += 1) {
      const value = valueAt(buckets, xs, ys, values, (column + 0.5) / across, (row + 0.5) / across);
      cells[row * across + column] = value;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return { across, cells, low, high };
}

const BUCKETS = 12;

function bucketOf(share: number): number {
  return Math.min(BUCKETS - 1, Math.max(0, Math.floor(share * BUCKETS)));
}

function bucketPoints(xs: Float64Array, ys: Float64Array): number[][] {
  const buckets: number[][] = Array.from({ length: BUCKETS * BUCKETS }, () => []);
  xs.forEach((x, index) => buckets[bucketOf(ys[index] ?? 0) * BUCKETS + bucketOf(x)]?.push(index));
  return buckets;
}

function valueAt(buckets: number[][], xs: Float64Array, ys: Float64Array, values: Float64Array, x: number, y: number): number {
  const near: { distance: number; value: number }[] = [];
  const reach = Math.ceil(FAR * BUCKETS);
  for (let row = Math.max(0, bucketOf(y) - reach); row <= Math.min(BUCKETS - 1, bucketOf(y) + reach); row += 1) {
    for (let column = Math.max(0, bucketOf(x) - reach); column <= Math.min(BUCKETS - 1, bucketOf(x) + reach); column += 1) {
      for (const index of buckets[row * BUCKETS + column] ?? []) {
        const distance = ((xs[index] ?? 0) - x) ** 2 + ((ys[index] ?? 0) - y) ** 2;
        if (distance <= FAR * FAR) keepNearest(near, distance, values[index] ?? 0);
      }
    }
  }
  let sum = 0;
  let weights = 0;
  for (const { distance, value } of near) {
    const weight = 1 / (distance + 1e-5);
    sum += weight * value;
    weights += weight;
  }
  return weights === 0 ? Number.NaN : sum / weights;
}

function keepNearest(near: { distance: number; value: number }[], distance: number, value: number): void {
  let at = near.length;
  while (at > 0 && (near[at - 1]?.distance ?? 0) > distance) at -= 1;
  if (at >= NEAREST) return;
  near.splice(at, 0, { distance, value });
  if (near.length > NEAREST) near.pop();
}
