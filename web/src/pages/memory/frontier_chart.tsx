// The picture of the frontier, with what the pointer is on in words.
import type { ComponentChildren } from "preact";
import { useCallback, useState } from "preact/hooks";
import { scalarText } from "../../api/values";
import { Canvas, type Size } from "../../charts/canvas";
import type { Colour } from "../../charts/colours";
import { cellAt, drawFrontier, frameOf, toX, toY, type Mark } from "../../charts/frontier/draw";
import { fitWords, indexOf, neededWords, type Grid } from "../../charts/frontier/grid";
import { ChartFrame } from "../../charts/frame";
import type { Pen } from "../../charts/pen";
import { LOOKS } from "../../parts/states";
import { go, studyPath } from "../../router";
import { theme } from "../../state/theme";
import { gpuTitle } from "./fit";
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

function markAt(grid: Grid, marks: readonly Mark[], size: Size, x: number, y: number): Mark | undefined {
  const frame = frameOf(grid, size.width, size.height);
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
  const draw = useCallback(
    (pen: Pen, size: Size, colour: Colour) => {
      const words = gpus.map(({ word }) => word);
      drawFrontier(pen, size.width, size.height, colour, { grid, words, focus, marks: marks.shown, ground, at: cell });
    },
    [grid, gpus.map(({ word }) => word).join(), focus, marks, ground, cell],
  );
  const point = (place: { x: number; y: number; size: Size } | undefined) => {
    const at = place && cellAt(grid, frameOf(grid, place.size.width, place.size.height), place.x, place.y);
    const next = {
      cell: at && indexOf(grid, at.column, at.row),
      mark: place && markAt(grid, marks.shown, place.size, place.x, place.y),
    };
    if (next.cell !== pointed.cell || next.mark !== pointed.mark) setPointed(next);
  };
  const letters = [...new Set(marks.shown.map(({ letter }) => letter))];
  const gpu = gpus[focus];
  return (
    <ChartFrame
      title="Out-of-memory frontier"
      study={study}
      empty={!grid.needed.some((needed) => needed > 0)}
      keys={letters.map((letter) => ({ word: LOOKS[letter].word, shape: LOOKS[letter].shape, colour: `state-${LOOKS[letter].colour}` }))}
      note={
        <span>
          Each cell has its required memory with its margin (G: GiB, M: MiB). A line is the limit of a GPU: what is below it fits as written. Dashed:
          what {gpu?.word} holds with smaller micro-batches. Hatched: does not fit {gpu?.word}. A click on a mark opens the trial.
        </span>
      }
    >
      {children}
      {/* It stands above the chart so that a finger does not cover it. */}
      <p class="readout" aria-live="polite">
        <Readout grid={grid} gpus={gpus} pointed={pointed} />
      </p>
      <Canvas
        label={`Required memory over ${grid.x} and ${grid.y}, with the limits of ${gpus.map(({ word }) => word).join(", ")}. The table below says the same.`}
        height={(width) => Math.min(560, Math.max(300, Math.min(width * 0.62, grid.ys.length * 46 + 84)))}
        least={280}
        draw={draw}
        onPoint={point}
        onClick={({ x, y, size }) => {
          const mark = markAt(grid, marks.shown, size, x, y);
          if (mark !== undefined) go(studyPath(study, "trials", mark.number));
        }}
        class={pointed.mark === undefined ? "" : "pointing"}
      />
      <p class="hint foreign">{basis}</p>
      {gpu !== undefined && <p class="hint">Details are for {gpuTitle(gpu)}.</p>}
    </ChartFrame>
  );
}

function Readout({ grid, gpus, pointed: { cell, mark } }: { grid: Grid; gpus: readonly Gpu[]; pointed: Pointed }) {
  if (cell === undefined) return <span class="hint">Point at a cell to read what it requires.</span>;
  const x = grid.xs[cell % grid.xs.length];
  const y = grid.ys[Math.floor(cell / grid.xs.length)];
  const place = `${grid.x} ${scalarText(x ?? null)}, ${grid.y} ${scalarText(y ?? null)}`;
  const fits = grid.gpus.map((gpu, index) => `${gpus[index]?.word ?? ""}: ${fitWords(grid, gpu, cell)}`);
  return (
    <span class="foreign">
      <strong>{place}</strong> {neededWords(grid, cell)}. {fits.join("; ")}.{mark !== undefined && ` Trial ${mark.number}: ${LOOKS[mark.letter].word}.`}
    </span>
  );
}
