// Reading of JSON as protobuf writes it.
import type { Double, Int64, Value } from "./messages";

// 0 where the field was left out.
export function int(value: Int64 | undefined): number {
  return value === undefined ? 0 : Number(value);
}

export function double(value: Double | undefined): number {
  return value === undefined ? 0 : Number(value);
}

// Seconds of a Duration such as "3.5s"; 0 where it was left out.
export function seconds(duration: string | undefined): number {
  return duration === undefined ? 0 : Number.parseFloat(duration);
}

// Milliseconds since 1970 of a Timestamp; undefined where it was left out.
export function instant(timestamp: string | undefined): number | undefined {
  return timestamp === undefined ? undefined : Date.parse(timestamp);
}

export type Scalar = number | string | boolean | null;

export function scalar(value: Value): Scalar {
  if (value.double_value !== undefined) return double(value.double_value);
  if (value.int_value !== undefined) return int(value.int_value);
  if (value.string_value !== undefined) return value.string_value;
  if (value.bool_value !== undefined) return value.bool_value;
  return null;
}

// A value as the server's tables have it: the texts of `QueryTrials`.
export function scalarText(value: Scalar): string {
  return value === null ? "null" : String(value);
}
