// A text that may be very long: its beginning, and the rest when asked for.
import { useState } from "preact/hooks";

const SHOWN = 400;

export function Long({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  if (text.length <= SHOWN * 1.25) return <span class="foreign">{text}</span>;
  return (
    <>
      <span class="foreign">{whole ? text : `${text.slice(0, SHOWN)} …`}</span>{" "}
      <button type="button" class="quiet" aria-expanded={whole} onClick={() => setWhole(!whole)}>
        {whole ? "Show less" : `Show all ${text.length.toLocaleString("en-US")} characters`}
      </button>
    </>
  );
}
