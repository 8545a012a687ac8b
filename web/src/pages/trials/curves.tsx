// Intermediate values of several trials in one chart.
import type { ReadonlySignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Curve, GetCurvesResponse } from "../../api/messages";
import type { Colour } from "../../charts/colours";
import { ChartFrame, type FrameKey } from "../../charts/frame";
import { axis, Plot, type Options } from "../../charts/plot";
import { wantsLog } from "../../charts/scale";
import { LineSample, seriesLook, type SeriesLook } from "../../charts/series";
import { number } from "../../format/format";
import { Read } from "../../parts/parts";
import { LOOKS, type Letter } from "../../parts/states";
import { Link, queryWord, setQuery, studyPath } from "../../router";
import { useReading } from "../../state/reading";
import { WHOLE_STEPS } from "../trial/curve";
import { alignedCurves } from "./compare_lines";

export function ComparedCurves({ study, numbers, version }: { study: string; numbers: number[]; version: ReadonlySignal<number> }) {
  const metric = queryWord("metric");
  const reading = useReading("AnalysisService/GetCurves", { study, numbers, ...(metric === "" ? {} : { metric }) }, version);
  const { metrics = [], curves = [] } = reading.data ?? {};
  const shown = reading.data?.metric ?? metric;
  return (
    <ChartFrame
      title="Intermediate values"
      study={study}
      empty={curves.length === 0}
      keys={curves.map((curve) => keyOf(curve, numbers))}
      keysShown={false}
      aside={
        metrics.length > 1 && (
          <label class="inline">
            Metric
            <select class="clip" value={shown} onChange={(event) => setQuery({ metric: event.currentTarget.value })}>
              {metrics.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )
      }
    >
      <Read reading={reading} what="the curves">
        {(answer) => <Chart study={study} answer={answer} numbers={numbers} />}
      </Read>
    </ChartFrame>
  );
}

// The look of a trial is that of its place in the table.
function lookOf(trial: number | undefined, numbers: readonly number[]): SeriesLook {
  return seriesLook(Math.max(0, numbers.indexOf(trial ?? 0)));
}

function stateWord(curve: Curve): string {
  return LOOKS[(curve.state ?? "") as Letter]?.word ?? "";
}

// A curve's line in a saved picture.
function keyOf(curve: Curve, numbers: readonly number[]): FrameKey {
  const { colour, dash } = lookOf(curve.number, numbers);
  const line = dash.length === 0 ? "" : (dash[0] ?? 0) > 4 ? ", dashed" : ", dotted";
  return { word: `trial ${curve.number ?? 0}, ${stateWord(curve)}${line}`, colour, shape: "dash" };
}

function Chart({ study, answer, numbers }: { study: string; answer: GetCurvesResponse; numbers: number[] }) {
  const curves = answer.curves ?? [];
  const data = useMemo(() => alignedCurves(curves), [answer]);
  const [steps, ...columns] = data;
  const isLog = wantsLog(columns.flat().filter((value): value is number => value !== null));
  const metric = answer.metric ?? "value";
  if (steps.length === 0) return <p class="hint">None of these trials has reported intermediate values{metric === "" ? "" : ` of ${metric}`}.</p>;
  const options = (colour: Colour): Options => ({
    scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
    axes: [
      axis(colour, { label: "step", incrs: WHOLE_STEPS }),
      axis(colour, { label: metric.slice(0, 60), size: 64, values: (_plot, splits) => splits.map((value) => (value === null ? "" : number(value, 4))) }),
    ],
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: true } },
    series: [
      {},
      ...curves.map((curve) => {
        const look = lookOf(curve.number, numbers);
        return { stroke: colour(look.colour), dash: look.dash, width: 2, spanGaps: true, points: { show: (curve.steps ?? []).length === 1, size: 7 } };
      }),
    ],
  });
  return (
    <>
      <Plot
        label={`Values of ${metric} by step of ${curves.length} trials. Each trial's page has its numbers as a table.`}
        data={data}
        options={options}
        version={`${metric} ${isLog} ${curves.map(({ number: trial }) => trial ?? 0).join(" ")}`}
      />
      <div class="legend">
        {curves.map((curve) => (
          <span key={curve.number ?? 0} class="state">
            <LineSample look={lookOf(curve.number, numbers)} />
            <Link to={studyPath(study, "trials", curve.number ?? 0)}>trial {curve.number ?? 0}</Link> {stateWord(curve)}
          </span>
        ))}
        {isLog && <span>The axis is logarithmic.</span>}
      </div>
    </>
  );
}
