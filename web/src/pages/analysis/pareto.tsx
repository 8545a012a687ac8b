// Several objectives: the Pareto front, and the volume that it dominates as trials end.
import { useCallback, useMemo } from "preact/hooks";
import { scaleFrom, scaleOf, type Scale } from "../../charts/axes";
import type { Colour } from "../../charts/colours";
import { ChartFrame } from "../../charts/frame";
import { drawMark } from "../../charts/mark";
import type { Pen } from "../../charts/pen";
import { number, percent, plural } from "../../format/format";
import { queryWord, setQuery } from "../../router";
import { hypervolumeHistory, paretoFront, type Point } from "./front";
import { Numbers, TrialLink } from "./numbers";
import { cell, type Column } from "./table";
import { openTrial, useView, type View } from "./view";
import { drawDots, Xy, type Place } from "./xy";

// Shown trials that are feasible and have all objectives.
function feasibleRows({ table, mask }: View): number[] {
  const rows: number[] = [];
  for (let row = 0; row < table.rows; row += 1) {
    const complete = table.objectives.every(({ values }) => Number.isFinite(values[row]));
    if (mask[row] === 1 && table.letters[row] === "C" && complete) rows.push(row);
  }
  return rows;
}

function pointsOf(objectives: readonly Column[], rows: readonly number[]): Point[] {
  return rows.map((row) => objectives.map(({ values, minimized }) => (minimized ? 1 : -1) * (values[row] ?? 0)));
}

export function Pareto() {
  const view = useView();
  const { objectives } = view.table;
  const x = objectives.find(({ name }) => name === queryWord("px")) ?? objectives[0];
  const y = objectives.find(({ name }) => name === queryWord("py")) ?? objectives[1];
  const rows = useMemo(() => feasibleRows(view), [view]);
  const front = useMemo(() => paretoFront(pointsOf(objectives, rows)).map((index) => rows[index] ?? 0), [rows, objectives]);
  if (x === undefined || y === undefined) return null;
  return (
    <ChartFrame
      title="Pareto front"
      study={view.name}
      empty={rows.length === 0}
      aside={
        objectives.length > 2 &&
        ([["px", x, "across"], ["py", y, "up"]] as const).map(([word, chosen, way]) => (
          <label key={word} class="inline">
            {way}
            <select value={chosen.name} onChange={(event) => setQuery({ [word]: event.currentTarget.value })}>
              {objectives.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        ))
      }
      keys={[
        { word: `on the front (${front.length})`, colour: "best", shape: "diamond" },
        { word: `dominated (${rows.length - front.length})`, colour: "state-completed", shape: "disc" },
      ]}
      note={
        <span>
          {x.name}: {x.minimized ? "lower" : "higher"} is better; {y.name}: {y.minimized ? "lower" : "higher"} is better.
        </span>
      }
    >
      {rows.length === 0 ? <p class="hint">No chosen trial has completed with all objectives.</p> : <FrontChart view={view} x={x} y={y} rows={rows} front={front} />}
      <Numbers
        heads={["Trial", ...objectives.map(({ name }) => name), ...view.table.parameters.map(({ name }) => name)]}
        rows={() =>
          sortedBy(front, x).map((row) => [
            <TrialLink view={view} trial={view.table.numbers[row] ?? 0} />,
            ...[...objectives, ...view.table.parameters].map((column) => cell(column, row) ?? ""),
          ])
        }
        total={front.length}
      />
    </ChartFrame>
  );
}

function sortedBy(rows: readonly number[], column: Column): number[] {
  return [...rows].sort((a, b) => (column.values[a] ?? 0) - (column.values[b] ?? 0));
}

function FrontChart({ view, x, y, rows, front }: { view: View; x: Column; y: Column; rows: number[]; front: number[] }) {
  const scale = (column: Column): Scale => scaleOf(rows.map((row) => column.values[row] ?? 0), false);
  const xScale = useMemo(() => scale(x), [rows, x]);
  const yScale = useMemo(() => scale(y), [rows, y]);
  const paint = useCallback(
    (pen: Pen, place: Place, colour: Colour) => {
      const at = (row: number): [number, number] => [place.x(x.values[row] ?? 0), place.y(y.values[row] ?? 0)];
      const onFront = new Set(front);
      pen.globalAlpha = 0.6;
      drawDots(pen, rows.length, (index) => at(rows[index] ?? 0), (index) => (onFront.has(rows[index] ?? 0) ? 1 : 0), [colour("state-completed")], 2.8);
      pen.globalAlpha = 1;
      pen.strokeStyle = colour("best");
      pen.lineWidth = 1.2;
      // With two objectives the front is a staircase; with more, a line would say what is not so.
      if (view.table.objectives.length === 2) drawStairs(pen, sortedBy(front, x).map(at), x.minimized);
      pen.lineWidth = 2;
      for (const row of front) drawMark(pen, "diamond", ...at(row), 9);
    },
    [rows, front, xScale, yScale],
  );
  const order = [...front, ...rows];
  return (
    <Xy
      label={`${y.name} over ${x.name} of ${plural(rows.length, "trial")}, of which ${front.length} are on the front. The numbers of these are below.`}
      x={xScale}
      y={yScale}
      xWord={x.name}
      yWord={y.name}
      height={380}
      paint={paint}
      points={{ count: order.length, x: (index) => x.values[order[index] ?? 0] ?? 0, y: (index) => y.values[order[index] ?? 0] ?? 0 }}
      say={(index) => {
        const row = order[index] ?? 0;
        return `Trial ${view.table.numbers[row]}${index < front.length ? ", on the front" : ""}: ${x.name} ${number(x.values[row] ?? 0)}, ${y.name} ${number(y.values[row] ?? 0)}`;
      }}
      open={(index) => openTrial(view, view.table.numbers[order[index] ?? 0] ?? 0)}
    />
  );
}

// From left to right. Of two neighbours, the left one alone is as good up to the right one where less
// is better across; else the right one is from there on.
function drawStairs(pen: Pen, places: [number, number][], lessAcross: boolean): void {
  pen.beginPath();
  places.forEach(([x, y], index) => {
    const before = places[index - 1];
    if (before === undefined) pen.moveTo(x, y);
    else {
      if (lessAcross) pen.lineTo(x, before[1]);
      else pen.lineTo(before[0], y);
      pen.lineTo(x, y);
    }
  });
  pen.stroke();
}

export function Hypervolume() {
  const view = useView();
  const { objectives } = view.table;
  const rows = useMemo(() => feasibleRows(view), [view]);
  const { shares, reference } = useMemo(() => hypervolumeHistory(pointsOf(objectives, rows)), [rows, objectives]);
  const numbers = view.table.numbers;
  const x = useMemo(() => scaleOf(rows.map((row) => numbers[row] ?? 0), false, 0.01), [rows]);
  const y = useMemo<Scale>(() => scaleFrom(0, Math.max(...shares.slice(-1), 0.01), false, 0.03), [shares]);
  const paint = useCallback(
    (pen: Pen, place: Place, colour: Colour) => {
      pen.strokeStyle = colour("best");
      pen.lineWidth = 2;
      pen.beginPath();
      rows.forEach((row, index) => {
        const at = place.x(numbers[row] ?? 0);
        if (index === 0) pen.moveTo(at, place.y(shares[0] ?? 0));
        else {
          pen.lineTo(at, place.y(shares[index - 1] ?? 0));
          pen.lineTo(at, place.y(shares[index] ?? 0));
        }
      });
      pen.stroke();
    },
    [rows, shares, x, y],
  );
  const at = reference.map((value, index) => `${objectives[index]?.name} ${number((objectives[index]?.minimized ? 1 : -1) * value)}`).join(", ");
  return (
    <ChartFrame
      title="Hypervolume"
      study={view.name}
      empty={rows.length === 0}
      note={rows.length > 0 && <span>The volume that the front so far dominates, as a share of the room between the best value of each objective and the reference point ({at}).</span>}
    >
      {rows.length === 0 ? (
        <p class="hint">No chosen trial has completed with all objectives.</p>
      ) : (
        <Xy
          label={`The hypervolume after each trial; at last ${percent(shares.at(-1) ?? 0)}.`}
          x={x}
          y={y}
          xWord="trial"
          yWord="share of the volume"
          paint={paint}
          points={{ count: rows.length, x: (index) => numbers[rows[index] ?? 0] ?? 0, y: (index) => shares[index] ?? 0 }}
          say={(index) => `After trial ${numbers[rows[index] ?? 0]}: ${percent(shares[index] ?? 0)}`}
          open={(index) => openTrial(view, numbers[rows[index] ?? 0] ?? 0)}
        />
      )}
      <Numbers
        heads={["Trial", "Hypervolume"]}
        rows={() => rows.flatMap((row, index) => (index === 0 || shares[index] !== shares[index - 1] ? [[<TrialLink view={view} trial={numbers[row] ?? 0} />, percent(shares[index] ?? 0)]] : [])).reverse()}
        total={rows.filter((_, index) => index === 0 || shares[index] !== shares[index - 1]).length}
        more="Each trial that moved the front, the latest first."
      />
    </ChartFrame>
  );
}
