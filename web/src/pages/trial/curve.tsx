// What a trial measured while it ran.
import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import type { Measurement, Study, Trial } from "../../api/messages";
import { double, int } from "../../api/values";
import type { Colour } from "../../charts/colours";
import { ChartFrame } from "../../charts/frame";
import { axis, Plot, type Options } from "../../charts/plot";
import { wantsLog } from "../../charts/scale";
import { count, number } from "../../format/format";
import { Scroll } from "../../parts/parts";
import { queryWord, setQuery } from "../../router";

// Names of all metrics, objectives first.
export function metricNames(study: Study, measurements: readonly Measurement[]): string[] {
  const measured = new Set(measurements.flatMap(({ metrics }) => Object.keys(metrics ?? {})));
  const objectives = (study.objectives ?? []).map(({ metric }) => metric ?? "").filter((name) => measured.has(name));
  return [...new Set([...objectives, ...[...measured].sort()])];
}

// Steps and values of a metric, by step; of a step that was measured twice, the later value.
export function curveOf(measurements: readonly Measurement[], metric: string): { steps: number[]; values: (number | null)[] } {
  const values = new Map<number, number | null>();
  for (const { step, metrics } of measurements) {
    const value = metrics?.[metric];
    if (value === undefined) continue;
    const read = double(value);
    values.set(int(step), Number.isFinite(read) ? read : null);
  }
  const steps = [...values.keys()].sort((left, right) => left - right);
  return { steps, values: steps.map((step) => values.get(step) ?? null) };
}

export function CurveCard({ study, trial }: { study: Study; trial: Trial }) {
  const measurements = trial.measurements ?? [];
  const names = metricNames(study, measurements);
  const asked = queryWord("metric");
  const metric = names.includes(asked) ? asked : (names[0] ?? "");
  return (
    <ChartFrame
      title={`Intermediate values of trial ${int(trial.number)}`}
      study={study.name ?? ""}
      empty={metric === ""}
      aside={
        names.length > 1 && (
          <label class="inline">
            Metric
            <select class="clip" value={metric} onChange={(event) => setQuery({ metric: event.currentTarget.value })}>
              {names.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )
      }
    >
      {metric === "" ? <p class="hint">It has reported no intermediate values.</p> : <Curve measurements={measurements} metric={metric} />}
    </ChartFrame>
  );
}

// Steps are whole numbers.
export const WHOLE_STEPS = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));

function Curve({ measurements, metric }: { measurements: readonly Measurement[]; metric: string }) {
  const curve = useMemo(() => curveOf(measurements, metric), [measurements, metric]);
  const isLog = wantsLog(curve.values.filter((value): value is number => value !== null));
  const data = useMemo<uPlot.AlignedData>(() => [curve.steps, curve.values], [curve]);
  const options = (colour: Colour): Options => ({
    scales: { x: { time: false }, y: { distr: isLog ? 3 : 1 } },
    axes: [axis(colour, { label: "step", incrs: WHOLE_STEPS }), axis(colour, { label: metric.slice(0, 60), size: 64, values: (_plot, splits) => splits.map((value) => (value === null ? "" : number(value, 4))) })],
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: true } },
    series: [{}, { stroke: colour("state-completed"), width: 2, spanGaps: true, points: { show: curve.steps.length < 100, fill: colour("state-completed"), size: 6 } }],
  });
  const last = curve.values.at(-1);
  return (
    <>
      <Plot label={`Values of ${metric} by step. The table below has the same numbers.`} data={data} options={options} version={`${metric} ${isLog}`} height={240} />
      <p class="hint">
        {count(curve.steps.length)} values{isLog && ", on a logarithmic axis"}
        {last !== null && last !== undefined && `; the last is ${number(last)} at step ${count(curve.steps.at(-1) ?? 0)}`}.
      </p>
      <details>
        <summary>As a table</summary>
        <Scroll label={`Values of ${metric}`} class="low">
          <table>
            <thead>
              <tr>
                <th scope="col" class="number">
                  Step
                </th>
                <th scope="col" class="number">
                  <span class="clip">{metric}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {curve.steps.map((step, index) => (
                <tr key={step}>
                  <td class="number">{count(step)}</td>
                  <td class="number">{number(curve.values[index] ?? Number.NaN, 7)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </details>
    </>
  );
}
