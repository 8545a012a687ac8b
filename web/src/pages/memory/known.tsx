// Reading of what the server may know nothing of, which is no error of anybody's.
import type { ComponentChildren } from "preact";
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
