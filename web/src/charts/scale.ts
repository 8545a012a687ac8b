// Where values lie on an axis.

// Whether a logarithmic axis shows these values better: all are above 0, and the largest is at least
// a hundred times the median's distance to the smallest.
export function wantsLog(values: readonly number[]): boolean {
  const finite = values.filter(Number.isFinite).sort((a, b) => a - b);
  const low = finite[0];
  const high = finite[finite.length - 1];
  if (finite.length < 5 || low === undefined || high === undefined || low <= 0) return false;
  const middle = finite[Math.floor(finite.length / 2)] ?? low;
  return high / low >= 100 && high / Math.max(middle, low) >= 10;
}

// The middle of the values, in which a chart is not flattened by few that are far out: from the
// smallest of what matters to a quantile of the rest. [low, high], or undefined without values.
export function usefulRange(values: readonly number[], minimized: boolean): [number, number] | undefined {
  const finite = values.filter(Number.isFinite).sort((a, b) => a - b);
  const low = finite[0];
  const high = finite[finite.length - 1];
  if (low === undefined || high === undefined) return undefined;
  const quantile = (share: number) => finite[Math.min(finite.length - 1, Math.floor(share * finite.length))] ?? low;
  const spread = quantile(0.9) - quantile(0.1);
  const from = minimized ? low : Math.max(low, quantile(0.1) - 2 * spread);
  const to = minimized ? Math.min(high, quantile(0.9) + 2 * spread) : high;
  const margin = (to - from) * 0.04 || Math.abs(to) * 0.05 || 1;
  return [from - margin, to + margin];
}
