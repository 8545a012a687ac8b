// A card around one or more charts that can be saved as one picture, and read as numbers.
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useMemo, useRef } from "preact/hooks";
import { StateMark, type StateLook } from "../parts/states";
import { perform } from "../state/notices";
import { colours } from "./colours";
import type { Drawing } from "./pen";
import { compose, download, fileName, type Format, type Key } from "./save";

type Maker = () => Drawing | undefined;

class Charts {
  private readonly makers = new Set<Maker>();

  add(maker: Maker): () => void {
    this.makers.add(maker);
    return () => this.makers.delete(maker);
  }

  drawings(): Drawing[] {
    return [...this.makers].map((make) => make()).filter((drawing) => drawing !== undefined);
  }
}

const Frame = createContext<Charts | undefined>(undefined);

// Tells the frame around a chart how to draw it anew. Without a frame, nothing.
export function useSavedAs(make: Maker): void {
  const charts = useContext(Frame);
  const latest = useRef(make);
  latest.current = make;
  useEffect(() => charts?.add(() => latest.current()), [charts]);
}

// A colour or mark of a chart, and its word. `colour`: of style/theme.css, or one that CSS reads.
export interface FrameKey {
  word: string;
  colour: string;
  shape: StateLook["shape"];
}

export interface ChartFrameProps {
  title: string;
  // The first word of the file's name: the study's.
  study: string;
  keys?: readonly FrameKey[];
  // Whether the keys are also shown on the page; else in saved pictures alone.
  keysShown?: boolean;
  // What there is to say beside the keys.
  note?: ComponentChildren;
  aside?: ComponentChildren;
  // Without a chart there is nothing to save.
  empty?: boolean;
  children: ComponentChildren;
  class?: string;
}

export function ChartFrame({ title, study, keys = [], keysShown = true, note, aside, empty = false, children, class: look = "" }: ChartFrameProps) {
  const charts = useMemo(() => new Charts(), []);
  const save = (format: Format) => {
    const colour = colours.value;
    const drawn = keys.map((key): Key => ({ ...key, colour: key.colour.startsWith("#") ? key.colour : colour(key.colour) }));
    const picture = compose(`${title} · ${study}`, charts.drawings(), drawn, colour);
    void perform(download(picture, `${title} of the study ${study}`, [study, title], format), () => `${fileName([study, title], format)} is saved.`);
  };
  return (
    <Frame.Provider value={charts}>
      <section class={`card ${look}`} aria-label={title}>
        <header>
          <h2>{title}</h2>
          <div class="buttons">
            {aside}
            {!empty &&
              (["svg", "png"] as const).map((format) => (
                <button key={format} type="button" class="quiet" aria-label={`Save “${title}” as ${format.toUpperCase()}`} onClick={() => save(format)}>
                  ⤓ {format.toUpperCase()}
                </button>
              ))}
          </div>
        </header>
        {((keysShown && keys.length > 0) || note !== undefined) && (
          <div class="legend">
            {(keysShown ? keys : []).map((key) => (
              <KeyWord key={key.word} of={key} />
            ))}
            {note}
          </div>
        )}
        {children}
      </section>
    </Frame.Provider>
  );
}

function KeyWord({ of: { word, colour, shape } }: { of: FrameKey }) {
  const mark = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (mark.current !== null) mark.current.style.color = colour.startsWith("#") ? colour : `var(--${colour})`;
  }, [colour]);
  return (
    <span class="state">
      <span ref={mark}>
        <StateMark look={{ letter: "C", word, colour: "", shape }} />
      </span>
      {word}
    </span>
  );
}
