// The objective over each parameter by itself.
import { useCallback, useMemo, useState } from "preact/hooks";
import { drawAxes, innerBox, scaleOf, within, type Scale } from "../../charts/axes";
import { Canvas, type Size } from "../../charts/canvas";
import { type Colour } from "../../charts/colours";
import { ChartFrame } from "../../charts/frame";
import type { Pen } from "../../charts/pen";
import { rampSteps } from "../../charts/ramp";
import { count, number, plural } from "../../format/format";
import { queryWord, setQuery } from "../../router";
import { theme } from "../../state/theme";
import { NumbersOfTrials } from "./numbers";
import { spansDecades } from "./parallel_lines";
import { takeRows } from "./rows";
import { cell, type Column } from "./table";
import { openTrial, useView } from "./view";
import { drawDots, nearestOf, placeIn, type Place } from "./xy";

const PANEL = 240; // CSS pixels, height
const LEAST_PANEL = 300; // width
const AGES = 8; // colours

export function columnScale(column: Column, rows: Iterable<number>): Scale {
  if (column.choices !== undefined) return { kind: "choice", choices: column.choices };
  const values = Array.from(rows, (row) => column.values[row] ?? Number.NaN);
  return scaleOf(values, column.log || (column.objective && spansDecades(Float64Array.from(values))));
}

// A choice's dots lie beside each other; the same trial always at the same place.
export function spread(column: Column, row: number): number {
  const value = column.values[row] ?? Number.NaN;
  if (column.choices === undefined) return value;
  return value + (((Math.imul(row, 2654435761) >>> 0) / 2 ** 32) - 0.5) * 0.5;
}

export function Slice() {
  const view = useView();
  const only = queryWord("slice");
  const { parameters } = view.table;
  const shown = parameters.some(({ name }) => name === only) ? parameters.filter(({ name }) => name === only) : parameters;
  const taken = useMemo(() => takeRows(view, []), [view]);
  return (
    <ChartFrame
      title={`Slices of ${view.objective.name}`}
      study={view.name}
      empty={taken.rows.length === 0}
      aside={
        <select aria-label="Parameter of the slices" value={only} onChange={(event) => setQuery({ slice: event.currentTarget.value })}>
          <option value="">all parameters</option>
          {parameters.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      }
      keys={[
        { word: "first trials", colour: rampSteps(AGES, theme.value)[0] ?? "#888", shape: "disc" },
        { word: "latest trials", colour: rampSteps(AGES, theme.value)[AGES - 1] ?? "#888", shape: "disc" },
      ]}
      note={taken.of > taken.rows.length && <span>{count(taken.rows.length)} of {count(taken.of)} completed trials are drawn, the best among them.</span>}
    >
      {taken.rows.length === 0 ? <p class="hint">No chosen trial has completed.</p> : <Panels parameters={shown} rows={taken.rows} />}
      <NumbersOfTrials view={view} columns={[view.objective, ...shown]} />
    </ChartFrame>
  );
}

interface Panel {
  left: number;
  top: number;
  size: Size;
  column: Column;
  rows: number[];
  scale: Scale;
}

function panelsOf(parameters: readonly Column[], rows: readonly number[], width: number): Panel[] {
  const across = Math.max(1, Math.min(parameters.length, Math.floor(width / LEAST_PANEL)));
  const size = { width: Math.floor(width / across), height: PANEL };
  return parameters.map((column, index) => {
    const own = rows.filter((row) => Number.isFinite(column.values[row]));
    return { left: (index % across) * size.width, top: Math.floor(index / across) * PANEL, size, column, rows: own, scale: columnScale(column, own) };
  });
}

function Panels({ parameters, rows }: { parameters: Column[]; rows: number[] }) {
  const view = useView();
  const [said, setSaid] = useState("");
  const { objective, table } = view;
  const y = useMemo(() => columnScale(objective, rows), [objective, rows]);
  const names = parameters.map(({ name }) => name).join("\n");
  const ground = theme.value;
  const placeOf = (panel: Panel): Place => placeIn(innerBox(panel.size.width, panel.size.height, y), panel.scale, y);
  const draw = useCallback(
    (pen: Pen, { width }: Size, colour: Colour) => {
      const colours = rampSteps(AGES, ground);
      for (const panel of panelsOf(parameters, rows, width)) {
        const place = placeOf(panel);
        pen.save();
        pen.translate(panel.left, panel.top);
        drawAxes(pen, place.box, panel.scale, y, { x: panel.column.name, y: objective.name }, colour);
        pen.globalAlpha = rows.length > 500 ? 0.6 : 0.9;
        within(pen, place.box, () =>
          drawDots(
            pen,
            panel.rows.length,
            (index) => [place.x(spread(panel.column, panel.rows[index] ?? 0)), place.y(objective.values[panel.rows[index] ?? 0] ?? 0)],
            (index) => Math.floor(((panel.rows[index] ?? 0) / table.rows) * AGES),
            colours,
            rows.length > 500 ? 2.2 : 3.2,
          ),
        );
        pen.restore();
      }
    },
    [names, rows, objective, y, ground, table],
  );
  const find = ({ x, y: top, size }: { x: number; y: number; size: Size }): { row: number; column: Column } | undefined => {
    const panel = panelsOf(parameters, rows, size.width).find((one) => x >= one.left && x < one.left + one.size.width && top >= one.top && top < one.top + PANEL);
    if (panel === undefined) return undefined;
    const place = placeOf(panel);
    const of = (index: number) => panel.rows[index] ?? 0;
    const found = nearestOf(
      panel.rows.length,
      (index) => place.x(spread(panel.column, of(index))) - (x - panel.left),
      (index) => place.y(objective.values[of(index)] ?? 0) - (top - panel.top),
    );
    return found === undefined ? undefined : { row: of(found), column: panel.column };
  };
  const height = (width: number) => Math.max(...panelsOf(parameters, [], Math.max(width, 1)).map(({ top }) => top + PANEL), PANEL);
  return (
    <div class={said === "" ? "" : "pointing"}>
      <Canvas
        label={`${objective.name} over each of ${plural(parameters.length, "parameter")}, a dot for each completed trial. The numbers are below.`}
        height={height}
        draw={draw}
        onPoint={(at) => {
          const found = at && find(at);
          setSaid(found ? `Trial ${table.numbers[found.row]}: ${objective.name} ${number(objective.values[found.row] ?? 0)}, ${found.column.name} ${sayCell(found.column, found.row)}` : "");
        }}
        onClick={(at) => {
          const found = find(at);
          if (found) openTrial(view, table.numbers[found.row] ?? 0);
        }}
      />
      <p class="hint readout foreign">{said || "\u00a0"}</p>
    </div>
  );
}

export function sayCell(column: Column, row: number): string {
  const value = cell(column, row);
  return value === undefined ? "none" : typeof value === "number" ? number(value) : value;
}
