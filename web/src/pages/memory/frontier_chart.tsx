// The picture of the frontier, with what the pointer is on in words.
import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import { scalarText } from "../../api/values";
import { Canvas, type Size } from "../../charts/canvas";
import type { Colour } from "../../charts/colours";
import { cellAt, drawFrontier, frameOf, pictureHeight, toX, toY, type Mark, type View } from "../../charts/frontier/draw";
import { fitWords, indexOf, neededWords, type Grid } from "../../charts/frontier/grid";
import { ChartFrame } from "../../charts/frame";
import type { Pen } from "../../charts/pen";
import { LOOKS } from "../../parts/states";
import { go, studyPath } from "../../router";
import { theme } from "../../state/theme";
import type { Gpu } from "./capacities";
import type { Marks } from "./marks";

const NEAR = 9; // pixels

export interface ChartProps {
  study: string;
  grid: Grid;
  gpus: readonly Gpu[];
  focus: number;
  marks: Marks;
  basis: string;
  children: ComponentChildren;
}

interface Pointed {
  cell: number | undefined;
  mark: Mark | undefined;
}

function markAt(view: View, marks: readonly Mark[], size: Size, x: number, y: number): Mark | undefined {
  const frame = frameOf(view, size.width, size.height);
  let nearest: Mark | undefined;
  let distance = NEAR;
  for (const mark of marks) {
    const away = Math.hypot(toX(frame, mark.x) - x, toY(frame, mark.y) - y);
    if (away < distance) [nearest, distance] = [mark, away];
  }
  return nearest;
}

export function FrontierChart({ study, grid, gpus, focus, marks, basis, children }: ChartProps) {
  const [pointed, setPointed] = useState<Pointed>({ cell: undefined, mark: undefined });
  const ground = theme.value;
  const { cell } = pointed;
  const words = gpus.map(({ word }) => word);
  const view = useMemo((): View => ({ grid, words, focus }), [grid, words.join(), focus]);
  const draw = useCallback(
    (pen: Pen, size: Size, colour: Colour) => drawFrontier(pen, size.width, size.height, colour, { ...view, marks: marks.shown, ground, at: cell }),
    [view, marks, ground, cell],
  );
  const point = (place: { x: number; y: number; size: Size } | undefined) => {
    const at = place && cellAt(grid, frameOf(view, place.size.width, place.size.height), place.x, place.y);
    const next = {
      cell: at && indexOf(grid, at.column, at.row),
      mark: place && markAt(view, marks.shown, place.size, place.x, place.y),
    };
    if (next.cell !== pointed.cell || next.mark !== pointed.mark) setPointed(next);
  };
  const letters = [...new Set(marks.shown.map(({ letter }) => letter))];
  const spread = marks.shown.length > 0 && !(grid.smooth.x && grid.smooth.y);
  return (
    <ChartFrame
      title="Out-of-memory frontier"
      study={study}
      empty={!grid.needed.some((needed) => needed > 0)}
      keys={letters.map((letter) => ({ word: LOOKS[letter].word, shape: LOOKS[letter].shape, colour: `state-${LOOKS[letter].colour}` }))}
      note={
        <span>
          Each cell shows the memory that its configuration requires with the full batch, with a safety margin (G: GiB, M: MiB). Colours and hatching are for{" "}
          {words[focus]}, which “Details for” above selects; the lines end the cells that fit.
          {spread && " Marks of trials with equal values are scattered within their cell only so that they do not cover each other."}
          {marks.shown.length > 0 && " A click on a mark opens its trial."}
        </span>
      }
    >
      {children}
      {/* It stands above the chart so that a finger does not cover it. */}
      <p class="readout" aria-live="polite">
        <Readout grid={grid} gpus={gpus} pointed={pointed} />
      </p>
      <Canvas
        label={`Required memory over ${grid.x} and ${grid.y}, with the limits of ${words.join(", ")}. The table above lists what fits.`}
        height={(width) => pictureHeight(view, width)}
        least={280}
        draw={draw}
        onPoint={point}
        onClick={({ x, y, size }) => {
          const mark = markAt(view, marks.shown, size, x, y);
          if (mark !== undefined) go(studyPath(study, "trials", mark.number));
        }}
        class={pointed.mark === undefined ? "" : "pointing"}
      />
      {basis !== "" && <p class="hint foreign">Source of these figures: {basis}</p>}
    </ChartFrame>
  );
}

function Readout({ grid, gpus, pointed: { cell, mark } }: { grid: Grid; gpus: readonly Gpu[]; pointed: Pointed }) {
  if (cell === undefined) return <span class="hint">Point at a cell to read its required memory.</span>;
  const x = grid.xs[cell % grid.xs.length];
  const y = grid.ys[Math.floor(cell / grid.xs.length)];
  const place = `${grid.x} ${scalarText(x ?? null)}, ${grid.y} ${scalarText(y ?? null)}`;
  const fits = grid.gpus.map((gpu, index) => `${gpus[index]?.word ?? ""}: ${fitWords(gpu, cell)}`);
  return (
    <span class="foreign">
      <strong>{place}</strong> {neededWords(grid, cell)}. {fits.join("; ")}.{mark !== undefined && ` Trial ${mark.number}: ${LOOKS[mark.letter].word}.`}
    </span>
  );
}
