// Several objectives: which trials no other one beats, and how much room they dominate.

// A point for each trial, every coordinate to be minimized.
export type Point = readonly number[];

export function dominates(a: Point, b: Point): boolean {
  let better = false;
  for (let index = 0; index < a.length; index += 1) {
    const [left, right] = [a[index] ?? 0, b[index] ?? 0];
    if (left > right) return false;
    if (left < right) better = true;
  }
  return better;
}

// The indexes of the points that no other dominates; of equal points, all.
export function paretoFront(points: readonly Point[]): number[] {
  const order = points.map((_, index) => index).sort((a, b) => compare(points[a] ?? [], points[b] ?? []));
  const front: number[] = [];
  for (const index of order) {
    const point = points[index] ?? [];
    if (!front.some((other) => dominates(points[other] ?? [], point))) front.push(index);
  }
  return front.sort((a, b) => a - b);
}

function compare(a: Point, b: Point): number {
  for (let index = 0; index < a.length; index += 1) if (a[index] !== b[index]) return (a[index] ?? 0) - (b[index] ?? 0);
  return 0;
}

// The volume that the points dominate up to `reference`, slice by slice of the last coordinate.
export function hypervolume(points: readonly Point[], reference: Point): number {
  const within = points.filter((point) => point.every((value, index) => value < (reference[index] ?? 0)));
  return volume(within, reference);
}

function volume(points: readonly Point[], reference: Point): number {
  const last = reference.length - 1;
  if (points.length === 0) return 0;
  if (last === 0) return (reference[0] ?? 0) - Math.min(...points.map(([value = 0]) => value));
  const sorted = [...points].sort((a, b) => (a[last] ?? 0) - (b[last] ?? 0));
  let total = 0;
  let below: Point[] = [];
  sorted.forEach((point, index) => {
    const flat = point.slice(0, last);
    if (!below.some((other) => other.every((value, at) => value <= (flat[at] ?? 0)))) {
      below = [...below.filter((other) => !flat.every((value, at) => value <= (other[at] ?? 0))), flat];
    }
    const next = sorted[index + 1]?.[last] ?? reference[last] ?? 0;
    const thick = next - (point[last] ?? 0);
    if (thick > 0) total += thick * volume(below, reference.slice(0, last));
  });
  return total;
}

// The worst value of each objective, a tenth of its extent farther: what every trial dominates.
export function referencePoint(points: readonly Point[]): number[] {
  const [first = []] = points;
  return first.map((_, index) => {
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (const point of points) {
      low = Math.min(low, point[index] ?? 0);
      high = Math.max(high, point[index] ?? 0);
    }
    return high + ((high - low) * 0.1 || Math.abs(high) * 0.1 || 1);
  });
}

// After each point, the volume of the front so far as a share of the whole room between the best
// values and the reference. It is computed anew where the front changes alone.
export function hypervolumeHistory(points: readonly Point[]): { shares: Float64Array; reference: number[] } {
  const reference = referencePoint(points);
  const ideal = reference.map((_, index) => lowest(points, index));
  const room = reference.reduce((product, value, index) => product * (value - (ideal[index] ?? 0)), 1);
  const shares = new Float64Array(points.length);
  let front: Point[] = [];
  let now = 0;
  points.forEach((point, index) => {
    if (!front.some((other) => other.every((value, at) => value <= (point[at] ?? 0)))) {
      front = [...front.filter((other) => !dominates(point, other)), point];
      now = hypervolume(front, reference) / (room || 1);
    }
    shares[index] = now;
  });
  return { shares, reference };
}

function lowest(points: readonly Point[], index: number): number {
  let low = Number.POSITIVE_INFINITY;
  for (const point of points) low = Math.min(low, point[index] ?? 0);
  return low;
}
