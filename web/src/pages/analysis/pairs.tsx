// Two parameters at once: the contour, whose colour is the value, and the rank plot, whose colour is
// the place among all trials.
import { useCallback, useMemo } from "preact/hooks";
import { drawColourBar, share, type Scale } from "../../charts/axes";
import type { Colour } from "../../charts/colours";
import { ChartFrame } from "../../charts/frame";
import type { Pen } from "../../charts/pen";
import { rampSteps } from "../../charts/ramp";
import { count, number } from "../../format/format";
import { setQuery } from "../../router";
import { theme } from "../../state/theme";
import { makeGrid } from "./grid";
import { NumbersOfTrials } from "./numbers";
import { takeRows } from "./rows";
import { columnScale, sayCell, spread } from "./slice";
import type { Column } from "./table";
import { openTrial, useParameter, useView, type View } from "./view";
import { drawDots, Xy, type Place } from "./xy";

const STEPS = 16;
const HEIGHT = 400;

export function Contour() {
  const view = useView();
  return <Pair view={view} title={`Contour of ${view.objective.name}`} contour />;
}

export function Rank() {
  const view = useView();
  return <Pair view={view} title={`Rank of ${view.objective.name}`} contour={false} />;
}

function Pair({ view, title, contour }: { view: View; title: string; contour: boolean }) {
  const x = useParameter(view, "x", 0);
  const y = useParameter(view, "y", 1);
  const taken = useMemo(() => (x && y ? takeRows(view, [x, y]) : { rows: [], of: 0 }), [view, x, y]);
  const few = x === undefined || y === undefined || x === y;
  return (
    <ChartFrame
      title={title}
      study={view.name}
      empty={few || taken.rows.length === 0}
      aside={<PairChoice view={view} x={x} y={y} />}
      note={
        !few && (
          <span>
            {contour ? "A colour is the mean of the six nearest trials; where none is near, there is none." : "A colour is the place among the drawn trials."}{" "}
            {taken.of > taken.rows.length && `${count(taken.rows.length)} of ${count(taken.of)} completed trials are taken.`}
          </span>
        )
      }
    >
      {few ? (
        <p class="hint">Choose two different parameters.</p>
      ) : taken.rows.length === 0 ? (
        <p class="hint">No chosen trial has completed with both.</p>
      ) : (
        <PairChart view={view} x={x} y={y} rows={taken.rows} contour={contour} />
      )}
      {!few && <NumbersOfTrials view={view} columns={[view.objective, x, y]} />}
    </ChartFrame>
  );
}

function PairChoice({ view, x, y }: { view: View; x: Column | undefined; y: Column | undefined }) {
  return (
    <>
      {([["x", x, "across"], ["y", y, "up"]] as const).map(([word, chosen, way]) => (
        <label key={word} class="inline">
          {way}
          <select value={chosen?.name} onChange={(event) => setQuery({ [word]: event.currentTarget.value })}>
            {view.table.parameters.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      ))}
    </>
  );
}

// Places among the rows: 0 the best, 1 the worst.
export function ranks(objective: Column, rows: readonly number[]): Float64Array {
  const sign = objective.minimized ? 1 : -1;
  const sorted = rows.map((_, index) => index).sort((a, b) => sign * ((objective.values[rows[a] ?? 0] ?? 0) - (objective.values[rows[b] ?? 0] ?? 0)));
  const places = new Float64Array(rows.length);
  sorted.forEach((index, place) => {
    places[index] = rows.length > 1 ? place / (rows.length - 1) : 0;
  });
  return places;
}

interface PairChartProps {
  view: View;
  x: Column;
  y: Column;
  rows: number[];
  contour: boolean;
}

function PairChart({ view, x, y, rows, contour }: PairChartProps) {
  const { objective, table } = view;
  const xScale = useMemo(() => columnScale(x, rows), [x, rows]);
  const yScale = useMemo(() => columnScale(y, rows), [y, rows]);
  const shares = useMemo(() => (contour ? Float64Array.from(rows, (row) => objective.values[row] ?? 0) : ranks(objective, rows)), [rows, objective, contour]);
  const grid = useMemo(() => (contour ? gridOf(x, y, xScale, yScale, rows, shares) : undefined), [contour, xScale, yScale, shares]);
  const ground = theme.value;
  const colours = useMemo(() => rampSteps(STEPS, ground), [ground]);
  const [low, high] = useMemo(() => (contour ? middleOf(shares) : [0, 1]), [contour, shares]);
  const step = (value: number) => Math.min(STEPS - 1, Math.max(0, Math.floor(((value - low) / (high - low || 1)) * STEPS)));
  const paint = useCallback(
    (pen: Pen, place: Place, colour: Colour) => {
      if (grid !== undefined) drawGrid(pen, place, grid.cells, grid.across, (value) => colours[step(value)] ?? "#888");
      const at = (index: number): [number, number] => [place.x(spread(x, rows[index] ?? 0)), place.y(spread(y, rows[index] ?? 0))];
      pen.globalAlpha = grid === undefined ? 0.9 : 0.55;
      const dots = grid === undefined ? colours : [colour("text")];
      drawDots(pen, rows.length, at, (index) => (grid === undefined ? step(shares[index] ?? 0) : 0), dots, grid === undefined ? (rows.length > 800 ? 2.6 : 4) : 1.4);
      pen.globalAlpha = 1;
    },
    [grid, rows, colours, xScale, yScale, shares, low, high],
  );
  const around = useCallback(
    (pen: Pen, { box }: Place, colour: Colour) => {
      const bar = { left: box.left + box.width * 0.2, top: box.top + box.height + 50, width: box.width * 0.6, height: 9 };
      const ends = contour ? [number(low, 3), number(high, 3)] : ["best", "worst"];
      drawColourBar(pen, bar, colours, ends[0] ?? "", ends[1] ?? "", contour ? objective.name : "", colour);
    },
    [colours, low, high, contour, objective],
  );
  return (
    <Xy
      label={`${objective.name} as colour over ${x.name} and ${y.name}. The numbers are below.`}
      x={xScale}
      y={yScale}
      xWord={x.name}
      yWord={y.name}
      height={HEIGHT}
      below={34}
      paint={paint}
      around={around}
      points={{ count: rows.length, x: (index) => spread(x, rows[index] ?? 0), y: (index) => spread(y, rows[index] ?? 0) }}
      say={(index) => {
        const row = rows[index] ?? 0;
        return `Trial ${table.numbers[row]}: ${objective.name} ${number(objective.values[row] ?? 0)}, ${x.name} ${sayCell(x, row)}, ${y.name} ${sayCell(y, row)}`;
      }}
      open={(index) => openTrial(view, table.numbers[rows[index] ?? 0] ?? 0)}
    />
  );
}

function gridOf(x: Column, y: Column, xScale: Scale, yScale: Scale, rows: readonly number[], values: Float64Array) {
  const xs = Float64Array.from(rows, (row) => share(xScale, x.values[row] ?? 0));
  const ys = Float64Array.from(rows, (row) => share(yScale, y.values[row] ?? 0));
  return makeGrid(xs, ys, values);
}

// The values that the colours are for: few that are far out do not make all others the same.
export function middleOf(values: Float64Array): [number, number] {
  const sorted = values.filter(Number.isFinite).sort();
  const at = (part: number) => sorted[Math.round(part * (sorted.length - 1))] ?? 0;
  return [at(0.02), at(0.98)];
}

function drawGrid(pen: Pen, { box }: Place, cells: Float64Array, across: number, colourOf: (value: number) => string): void {
  const width = box.width / across;
  const height = box.height / across;
  cells.forEach((value, index) => {
    if (Number.isNaN(value)) return;
    pen.fillStyle = colourOf(value);
    const column = index % across;
    const row = Math.floor(index / across);
    // A little larger than a cell, so that no line is seen between two.
    pen.fillRect(box.left + column * width, box.top + box.height - (row + 1) * height, width + 0.6, height + 0.6);
  });
}
