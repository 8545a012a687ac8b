// Numbers, sizes and times as people read them. Units are always there.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// "11.2 GiB"; three significant digits.
export function bytes(value: number): string {
  if (!Number.isFinite(value)) return "unknown";
  let unit = 0;
  let size = value;
  while (Math.abs(size) >= 1023.5 && unit + 1 < BINARY.length) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || Math.abs(size) >= 100 ? 0 : Math.abs(size) >= 10 ? 1 : 2;
  return `${size.toFixed(digits)} ${BINARY[unit]}`;
}

// "1.23e-05", "0.8712", "12,345": what a column of results needs, six digits at most.
export function number(value: number, digits = 5): string {
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "infinite" : "-infinite";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return count(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(digits)));
}

// Making one for each number would cost more than all else in a table.
const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

// "12,345"
export function count(value: number): string {
  return COUNT.format(value);
}

// "3 trials", "1 trial"
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// "2.4 s", "3 min 20 s", "5 h 12 min", "3 d 4 h" from seconds.
export function duration(value: number): string {
  if (!Number.isFinite(value)) return "unknown";
  if (value < 0) return `-${duration(-value)}`;
  if (value < 9.95) return `${Number(value.toFixed(value < 0.1 ? 3 : 1))} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  const parts: [number, string][] = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor((whole % 86400) / 3600), "h"],
    [Math.floor((whole % 3600) / 60), "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([amount]) => amount > 0);
  return parts
    .slice(first, first + 2)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(" ");
}

// "14.2 h" from seconds: one unit, so that sums can be compared.
export function hours(value: number): string {
  if (value === 0) return "0 h";
  if (value < 3.6) return `${number(value, 2)} s`;
  if (value < 360) return `${number(value / 60, 2)} min`;
  return `${number(value / 3600, 3)} h`;
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return "unknown";
  return `${Number((share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0))} %`;
}

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

// In the reader's zone; from milliseconds since 1970.
export function time(instant_ms: number): string {
  return TIME.format(instant_ms);
}

// With seconds and the zone's name.
export function exactTime(instant_ms: number): string {
  return EXACT.format(instant_ms);
}

// "12 s ago", "in 3 min"
export function ago(instant_ms: number, now_ms: number): string {
  const age = (now_ms - instant_ms) / 1000;
  if (Math.abs(age) < 1) return "now";
  const [largest] = duration(Math.abs(age)).split(/(?<=[a-z]) /);
  return age > 0 ? `${largest} ago` : `in ${largest}`;
}
