// The empirical distribution: which share of the trials reached a value.
import { useCallback, useMemo } from "preact/hooks";
import { scaleFrom, scaleOf, type Scale } from "../../charts/axes";
import type { Colour } from "../../charts/colours";
import { ChartFrame } from "../../charts/frame";
import type { Pen } from "../../charts/pen";
import { number, percent, plural } from "../../format/format";
import { Numbers } from "./numbers";
import { spansDecades } from "./parallel_lines";
import { isFinal, type Column } from "./table";
import { useView, type View } from "./view";
import { Xy, type Place } from "./xy";

// Values of trials that have completed, ascending.
export function finalValues(view: Pick<View, "table">, objective: Column, mask?: Uint8Array): Float64Array {
  const values: number[] = [];
  for (let row = 0; row < view.table.rows; row += 1) {
    const value = objective.values[row] ?? Number.NaN;
    if (isFinal(view.table.letters[row]) && Number.isFinite(value) && (mask === undefined || mask[row] === 1)) values.push(value);
  }
  return Float64Array.from(values).sort();
}

// At a share of the values, 0 the lowest.
export function quantile(sorted: Float64Array, at: number): number {
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(at * sorted.length) - 1))] ?? Number.NaN;
}

export function Edf() {
  const view = useView();
  const { objective } = view;
  const all = useMemo(() => finalValues(view, objective), [view.table, objective]);
  const chosen = useMemo(() => finalValues(view, objective, view.mask), [view]);
  const filtered = chosen.length !== all.length;
  const x = useMemo(() => scaleOf(all, spansDecades(all)), [all]);
  const y = useMemo<Scale>(() => scaleFrom(0, 1, false, 0.02), []);
  const paint = useCallback(
    (pen: Pen, place: Place, colour: Colour) => {
      if (filtered) drawSteps(pen, place, all, colour("soft"), 1.5);
      drawSteps(pen, place, chosen, colour("state-completed"), 2.2);
    },
    [all, chosen, filtered, x],
  );
  const most = Math.min(chosen.length, 500);
  const at = (index: number) => chosen[Math.floor((index / Math.max(1, most - 1)) * (chosen.length - 1))] ?? 0;
  const shareAt = (index: number) => (Math.floor((index / Math.max(1, most - 1)) * (chosen.length - 1)) + 1) / chosen.length;
  return (
    <ChartFrame
      title={`Distribution of ${objective.name}`}
      study={view.name}
      empty={all.length === 0}
      keys={[{ word: filtered ? "chosen trials" : "completed trials", colour: "state-completed", shape: "dash" }, ...(filtered ? [{ word: "all completed trials", colour: "soft", shape: "dash" as const }] : [])]}
      note={<span>{objective.minimized ? "The farther left and up, the better." : "The farther right and down, the better."}</span>}
    >
      {all.length === 0 ? (
        <p class="hint">No trial has completed.</p>
      ) : (
        <Xy
          label={`The share of ${plural(chosen.length, "trial")} whose ${objective.name} is at most a value. The numbers are below.`}
          x={x}
          y={y}
          xWord={objective.name}
          yWord="share of trials"
          paint={paint}
          points={{ count: most, x: at, y: shareAt }}
          say={(index) => `${percent(shareAt(index))} of the trials have a ${objective.name} of at most ${number(at(index))}`}
        />
      )}
      <Numbers
        heads={["Share of trials", `${objective.name} at most`, ...(filtered ? ["of all trials"] : [])]}
        rows={() => Array.from({ length: 20 }, (_, index) => (index + 1) / 20).map((one) => [percent(one), quantile(chosen, one), ...(filtered ? [quantile(all, one)] : [])])}
        total={20}
      />
    </ChartFrame>
  );
}

function drawSteps(pen: Pen, place: Place, sorted: Float64Array, style: string, width: number): void {
  const { box } = place;
  // More steps than pixels are not seen.
  const every = Math.max(1, Math.floor(sorted.length / 1500));
  pen.strokeStyle = style;
  pen.lineWidth = width;
  pen.beginPath();
  pen.moveTo(box.left, place.y(0));
  let before = 0;
  for (let index = 0; index < sorted.length; index += every) {
    const x = place.x(sorted[index] ?? 0);
    pen.lineTo(x, place.y(before));
    before = Math.min(sorted.length, index + every) / sorted.length;
    pen.lineTo(x, place.y(before));
  }
  pen.lineTo(box.left + box.width, place.y(before));
  pen.stroke();
}
