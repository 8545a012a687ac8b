// Which brushes a chart has written into the address itself.
import type { Ranges } from "./filter";

function textOf(ranges: Ranges): string {
  return JSON.stringify([...ranges].sort(([one], [other]) => (one < other ? -1 : 1)), (_, value) => (value instanceof Set ? [...value] : (value as unknown)));
}

// The address follows a brush with a delay. What comes back of it late must not undo what was brushed since.
export class WrittenRanges {
  private texts: string[]; // what is shown, then what was written and has not come back

  constructor(shown: Ranges) {
    this.texts = [textOf(shown)];
  }

  wrote(ranges: Ranges): void {
    this.texts.push(textOf(ranges));
  }

  // Whether the address has `ranges` by the chart itself; else they count as shown from now on.
  isOwn(ranges: Ranges): boolean {
    const text = textOf(ranges);
    const place = this.texts.indexOf(text);
    this.texts = place < 0 ? [text] : this.texts.slice(place);
    return place >= 0;
  }
}
