// A text that may be very long: its beginning, and the rest when asked for.
import { useState } from "preact/hooks";

// `shown`: how many characters of a text that is longer are shown at first.
export function Long({ text, shown = 400 }: { text: string; shown?: number }) {
  const [whole, setWhole] = useState(false);
  if (text.length <= shown * 1.25) return <span class="foreign">{text}</span>;
  return (
    <>
      <span class="foreign">{whole ? text : `${text.slice(0, shown)} …`}</span>{" "}
      <button type="button" class="quiet" aria-expanded={whole} onClick={() => setWhole(!whole)}>
        {whole ? "Show less" : `Show all ${text.length.toLocaleString("en-US")} characters`}
      </button>
    </>
  );
}
