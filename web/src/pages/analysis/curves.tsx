// Intermediate values of trials over their steps, those that the pruner stopped among them.
import { useCallback, useMemo } from "preact/hooks";
import type { Curve, GetCurvesResponse } from "../../api/messages";
import { double, int } from "../../api/values";
import { scaleOf, type Scale } from "../../charts/axes";
import type { Colour } from "../../charts/colours";
import { ChartFrame } from "../../charts/frame";
import { drawMark } from "../../charts/mark";
import type { Pen } from "../../charts/pen";
import { number, plural } from "../../format/format";
import { Read } from "../../parts/parts";
import { LOOKS, StateBadge, type Letter } from "../../parts/states";
import { queryWord, setQuery } from "../../router";
import { useReading } from "../../state/reading";
import { useSlowVersion } from "../../state/version";
import { writeFilter } from "./filter";
import { Numbers, TrialLink } from "./numbers";
import { spansDecades } from "./parallel_lines";
import { openTrial, useView, type View } from "./view";
import { Xy, type Place } from "./xy";

const COUNTS = [20, 50, 100, 200];

export interface Line {
  number: number;
  letter: Letter;
  steps: number[];
  values: number[];
}

export function linesOf(curves: readonly Curve[]): Line[] {
  return curves.map((curve) => {
    const kept = (curve.values ?? []).map((value, index) => [int(curve.steps?.[index]), double(value)] as const).filter(([, value]) => Number.isFinite(value));
    return { number: curve.number ?? 0, letter: (curve.state || "R") as Letter, steps: kept.map(([step]) => step), values: kept.map(([, value]) => value) };
  });
}

export function Curves() {
  const view = useView();
  const metric = queryWord("curve");
  const most = COUNTS.find((one) => String(one) === queryWord("curves")) ?? 50;
  const where = writeFilter(view.filter, view.columns);
  const reading = useReading("AnalysisService/GetCurves", { study: view.name, metric, where, count: most }, useSlowVersion());
  const metrics = reading.data?.metrics ?? [];
  const shown = reading.data?.metric || metric || view.objective.name;
  return (
    <ChartFrame
      title={`Intermediate values of ${shown}`}
      study={view.name}
      empty={(reading.data?.curves ?? []).length === 0}
      aside={
        <>
          {metrics.length > 1 && (
            <select aria-label="Metric of the curves" value={shown} onChange={(event) => setQuery({ curve: event.currentTarget.value })}>
              {metrics.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
          <select aria-label="Curves that are drawn" value={most} onChange={(event) => setQuery({ curves: event.currentTarget.value })}>
            {COUNTS.map((one) => (
              <option key={one} value={one}>
                newest {one}
              </option>
            ))}
          </select>
        </>
      }
      keys={lettersOf(reading.data).map((letter) => ({ word: LOOKS[letter].word, colour: `state-${LOOKS[letter].colour}`, shape: LOOKS[letter].shape }))}
      note={<span>The mark at a curve's end says how the trial ended; the dashed ones did not complete.</span>}
    >
      <Read reading={reading} what="the curves">
        {(answer) => <CurvesChart view={view} answer={answer} metric={shown} />}
      </Read>
    </ChartFrame>
  );
}

function lettersOf(answer: GetCurvesResponse | undefined): Letter[] {
  return [...new Set((answer?.curves ?? []).map((curve) => (curve.state || "R") as Letter))].filter((letter) => letter in LOOKS);
}

function CurvesChart({ view, answer, metric }: { view: View; answer: GetCurvesResponse; metric: string }) {
  const lines = useMemo(() => linesOf(answer.curves ?? []).filter(({ steps }) => steps.length > 0), [answer]);
  const points = useMemo(() => lines.flatMap((line) => line.steps.map((step, index) => ({ line, step, value: line.values[index] ?? 0 }))), [lines]);
  const x = useMemo<Scale>(() => scaleOf(points.map(({ step }) => step), false, 0.02), [points]);
  const y = useMemo<Scale>(() => {
    const values = Float64Array.from(points, ({ value }) => value);
    return scaleOf(values, spansDecades(values));
  }, [points]);
  const paint = useCallback(
    (pen: Pen, place: Place, colour: Colour) => {
      for (const line of lines) drawCurve(pen, place, line, colour, lines.length);
    },
    [lines, x, y],
  );
  if (lines.length === 0) return <p class="hint">None of the chosen trials has intermediate values.</p>;
  return (
    <>
      <Xy
        label={`${metric} over steps of ${plural(lines.length, "trial")}. The last values are below.`}
        x={x}
        y={y}
        xWord="step"
        yWord={metric}
        height={360}
        paint={paint}
        points={{ count: points.length, x: (index) => points[index]?.step ?? 0, y: (index) => points[index]?.value ?? 0 }}
        say={(index) => {
          const point = points[index];
          return point === undefined ? "" : `Trial ${point.line.number}, ${LOOKS[point.line.letter].word}: step ${number(point.step)}, ${metric} ${number(point.value)}`;
        }}
        open={(index) => openTrial(view, points[index]?.line.number ?? 0)}
      />
      <Numbers
        heads={["Trial", "State", "Last step", `Last ${metric}`]}
        rows={() => lines.map((line) => [<TrialLink view={view} trial={line.number} />, <StateBadge letter={line.letter} />, line.steps.at(-1) ?? Number.NaN, line.values.at(-1) ?? Number.NaN])}
        total={lines.length}
      />
    </>
  );
}

function drawCurve(pen: Pen, place: Place, { letter, steps, values }: Line, colour: Colour, count: number): void {
  const look = LOOKS[letter];
  pen.strokeStyle = colour(`state-${look.colour}`);
  pen.fillStyle = pen.strokeStyle;
  pen.globalAlpha = count > 60 ? 0.45 : 0.75;
  pen.lineWidth = 1.3;
  pen.setLineDash(letter === "C" || letter === "I" || letter === "R" ? [] : [4, 3]);
  pen.beginPath();
  steps.forEach((step, index) => {
    const at = [place.x(step), place.y(values[index] ?? 0)] as const;
    if (index === 0) pen.moveTo(...at);
    else pen.lineTo(...at);
  });
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
  drawMark(pen, look.shape, place.x(steps.at(-1) ?? 0), place.y(values.at(-1) ?? 0), 7);
}
