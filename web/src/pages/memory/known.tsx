// Reading of what the server may know nothing of, which is no error of anybody's.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { Read } from "../../parts/parts";
import type { LiveReading } from "../../state/reading";

export function ReadKnown<T>({ reading, what, children }: { reading: LiveReading<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (reading.data === undefined && reading.error?.code === "FAILED_PRECONDITION") {
    return <p class="hint foreign">{reading.error.message}</p>;
  }
  return (
    <Read reading={reading} what={what}>
      {children}
    </Read>
  );
}

// While an answer to another choice is read, or where that choice was refused, the last answer stays,
// so that the page does not jump and the choice can be changed.
export function useKept<T>(reading: LiveReading<T>): LiveReading<T> {
  const last = useRef<T | undefined>(undefined);
  if (reading.data !== undefined) last.current = reading.data;
  return { ...reading, data: reading.data ?? last.current };
}
