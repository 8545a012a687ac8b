// The optimization history: trials by state, and the best value so far.
import { useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { historyRequest } from "../../api/first";
import type { GetHistoryResponse, Study } from "../../api/messages";
import { double, int } from "../../api/values";
import type { Colour } from "../../charts/colours";
import { ChartFrame } from "../../charts/frame";
import { drawMark } from "../../charts/mark";
import { axis, Plot, type Options } from "../../charts/plot";
import { usefulRange, wantsLog } from "../../charts/scale";
import { count, number } from "../../format/format";
import { isMinimized } from "../../format/study";
import { Read } from "../../parts/parts";
import { LOOKS, type Letter } from "../../parts/states";
import { go, studyPath } from "../../router";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";

type Axis = "linear" | "log";

export interface HistoryPoints {
  numbers: number[];
  letters: Letter[];
  values: (number | null)[]; // null: the trial has none
  best: (number | null)[]; // best so far, from the first that there is
}

// What the chart shows of one objective; of the first one with the best value so far.
export function historyPoints(history: GetHistoryResponse, objective: number): HistoryPoints {
  const numbers = history.numbers ?? [];
  const letters = [...(history.states ?? "")] as Letter[];
  const values = (history.series?.[objective]?.values ?? []).map((value) => {
    const read = double(value);
    return Number.isFinite(read) ? read : null;
  });
  const steps = history.best_numbers ?? [];
  let step = -1;
  const best = numbers.map((trial) => {
    while (step + 1 < steps.length && (steps[step + 1] ?? Number.POSITIVE_INFINITY) <= trial) step += 1;
    return objective !== 0 || step < 0 ? null : double(history.best_values?.[step]);
  });
  return { numbers, letters, values, best };
}

export function History({ study }: { study: Study }) {
  const live = useStudy();
  const reading = useReading("StudyService/GetHistory", historyRequest(live.name), live.version);
  return (
    <Read reading={reading} what="the history">
      {(history) => <HistoryChart study={study} history={history} />}
    </Read>
  );
}

function HistoryChart({ study, history }: { study: Study; history: GetHistoryResponse }) {
  const objectives = study.objectives ?? [];
  const [objective, setObjective] = useState(0);
  const [chosen, setChosen] = useState<Axis>();
  const points = useMemo(() => historyPoints(history, objective), [history, objective]);
  const completed = points.values.filter((value, index): value is number => value !== null && "CI".includes(points.letters[index] ?? ""));
  const mayLog = completed.length > 0 && completed.every((value) => value > 0);
  const scale: Axis = mayLog ? (chosen ?? (wantsLog(completed) ? "log" : "linear")) : "linear";
  const metric = objectives[objective]?.metric ?? "value";
  const letters = [...new Set(points.letters)];
  return (
    <ChartFrame
      title="Optimization history"
      study={study.name ?? ""}
      empty={completed.length === 0}
      keys={[
        ...letters.map((letter) => ({ word: LOOKS[letter].word, shape: LOOKS[letter].shape, colour: `state-${LOOKS[letter].colour}` })),
        ...(objective === 0 ? [{ word: "best so far", shape: "dash" as const, colour: "best" }] : []),
      ]}
      note={
        <span>
          {int(history.total) > points.numbers.length
            ? `${count(points.numbers.length)} of ${count(int(history.total))} trials are drawn: all steps of the best value, and the extremes of each stretch.`
            : "A click opens the trial. Pruned and failed trials are at the last value that they reported; those without one are on the lower edge."}
        </span>
      }
      aside={
        <div class="buttons">
          {objectives.length > 1 && (
            <select aria-label="Objective" value={objective} onChange={(event) => setObjective(Number(event.currentTarget.value))}>
              {objectives.map((one, index) => (
                <option key={one.metric} value={index}>
                  {one.metric}
                </option>
              ))}
            </select>
          )}
          <button type="button" aria-pressed={scale === "log"} disabled={!mayLog} onClick={() => setChosen(scale === "log" ? "linear" : "log")}>
            Logarithmic
          </button>
        </div>
      }
    >
      {completed.length === 0 ? (
        <p class="hint">No trial has a value yet.</p>
      ) : (
        <HistoryPlot points={points} metric={metric} scale={scale} study={study.name ?? ""} minimized={isMinimized(objectives[objective])} />
      )}
    </ChartFrame>
  );
}

interface HistoryPlotProps {
  points: HistoryPoints;
  metric: string;
  scale: Axis;
  study: string;
  minimized: boolean;
}

const MARK = 7;

function HistoryPlot({ points, metric, scale, study, minimized }: HistoryPlotProps) {
  const shown = useRef(points);
  shown.current = points;
  const [hovered, setHovered] = useState<number | null>(null);
  const data = useMemo<uPlot.AlignedData>(() => [points.numbers, points.best, points.values], [points]);
  const options = (colour: Colour): Options => ({
    scales: {
      x: { time: false },
      y: {
        distr: scale === "log" ? 3 : 1,
        range: (_plot, low, high) => {
          const values = shown.current.values.filter((value): value is number => value !== null);
          if (scale === "log") {
            const positive = values.filter((value) => value > 0);
            return [Math.min(...positive) * 0.9, Math.max(...positive) * 1.1];
          }
          return usefulRange(values, minimized) ?? [low ?? 0, high ?? 1];
        },
      },
    },
    axes: [
      axis(colour, { label: "trial" }),
      axis(colour, { label: metric, size: 64, values: (_plot, splits) => splits.map((value) => (value === null ? "" : number(value, 4))) }),
    ],
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: true }, points: { show: false } },
    series: [
      {},
      { stroke: colour("best"), width: 2, paths: steps, points: { show: false }, spanGaps: true },
      { paths: () => null, points: { show: false } },
    ],
    hooks: {
      draw: [(plot) => drawTrials(plot, shown.current, colour)],
      setCursor: [(plot) => setHovered(nearest(plot, shown.current))],
    },
  });
  const trial = hovered === null ? undefined : points.numbers[hovered];
  const value = hovered === null ? null : (points.values[hovered] ?? null);
  const letter = hovered === null ? undefined : points.letters[hovered];
  return (
    <div class={trial === undefined ? "" : "pointing"} onClick={() => trial !== undefined && go(studyPath(study, "trials", trial))}>
      <Plot
        label={`Values of ${metric} by trial. The trials page has the same numbers as a table.`}
        data={data}
        options={options}
        version={`${scale} ${metric} ${minimized}`}
      />
      <p class="hint readout">
        {trial !== undefined && letter !== undefined
          ? `Trial ${trial}: ${LOOKS[letter].word}${value === null ? "" : `, ${metric} ${number(value)}`}`
          : "\u00a0"}
      </p>
    </div>
  );
}

// The best value stays until a better one comes.
const steps: uPlot.Series.PathBuilder = (plot, seriesIndex, from, to) => {
  const [xs] = plot.data;
  const ys = plot.data[seriesIndex] ?? [];
  const stroke = new Path2D();
  let last: number | undefined;
  for (let index = from; index <= to; index += 1) {
    const value = ys[index];
    if (value === null || value === undefined) continue;
    const x = plot.valToPos(xs[index] ?? 0, "x", true);
    const y = plot.valToPos(value, "y", true);
    if (last === undefined) stroke.moveTo(x, y);
    else {
      stroke.lineTo(x, last);
      stroke.lineTo(x, y);
    }
    last = y;
  }
  return { stroke, fill: null, clip: null, band: null, gaps: null, flags: 0 } as unknown as uPlot.Series.Paths;
};

// Where the mark of a trial is, in the canvas's pixels; those without a value are on the edge.
function markPlace(plot: uPlot, points: HistoryPoints, index: number): { x: number; y: number } {
  const { top, height } = plot.bbox;
  const value = points.values[index] ?? null;
  const low = top + height - 4 * devicePixelRatio;
  const y = value === null ? low : plot.valToPos(value, "y", true);
  return { x: plot.valToPos(points.numbers[index] ?? 0, "x", true), y: Math.min(low, Math.max(top + 4 * devicePixelRatio, y)) };
}

function drawTrials(plot: uPlot, points: HistoryPoints, colour: Colour): void {
  const pen = plot.ctx;
  pen.save();
  pen.beginPath();
  pen.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  pen.clip();
  pen.lineWidth = 1.5 * devicePixelRatio;
  for (let index = 0; index < points.numbers.length; index += 1) {
    const look = LOOKS[points.letters[index] ?? "Q"];
    pen.fillStyle = colour(`state-${look.colour}`);
    pen.strokeStyle = pen.fillStyle;
    const { x, y } = markPlace(plot, points, index);
    drawMark(pen, look.shape, x, y, MARK * devicePixelRatio);
  }
  pen.restore();
}

const REACH = 12; // CSS pixels

function nearest(plot: uPlot, points: HistoryPoints): number | null {
  const { left = -1, top = -1 } = plot.cursor;
  if (left < 0) return null;
  let found: number | null = null;
  let least = REACH * REACH;
  for (let index = 0; index < points.numbers.length; index += 1) {
    const place = markPlace(plot, points, index);
    const dx = (place.x - plot.bbox.left) / devicePixelRatio - left;
    const dy = (place.y - plot.bbox.top) / devicePixelRatio - top;
    const distance = dx * dx + dy * dy;
    if (distance < least) {
      least = distance;
      found = index;
    }
  }
  return found;
}
