// Predicted against measured memory: each trial is a mark, and on the diagonal both are equal.
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Study } from "../../api/messages";
import { drawAxes, innerBox, scaleOf, share, within, type Box, type Scale } from "../../charts/axes";
import { Canvas, type Size } from "../../charts/canvas";
import type { Colour } from "../../charts/colours";
import { ChartFrame } from "../../charts/frame";
import { drawMark } from "../../charts/mark";
import { FONT, type Pen } from "../../charts/pen";
import { bytes } from "../../format/format";
import { Read, Scroll } from "../../parts/parts";
import { LOOKS, StateBadge } from "../../parts/states";
import { go, Link, queryWord, setQuery, studyPath } from "../../router";
import { useReading } from "../../state/reading";
import { useStudy } from "../../state/study";
import { errorSentences, MEASURED_COLUMNS, measuredOf, measureOf, MEASURES, pointWords, statistics, type Measure, type Measured } from "./measured";

const GIB = 2 ** 30;
const NEAR = 12; // pixels
const MOST = 2000;

export function Scatter({ study }: { study: Study }) {
  const live = useStudy();
  const measure = measureOf(queryWord("measure"));
  const reading = useReading("StudyService/QueryTrials", { study: live.name, sort: "-number", page_size: MOST, columns: MEASURED_COLUMNS }, live.version);
  const points = useMemo(() => reading.data && measuredOf(reading.data, measure), [reading.data, measure]);
  const letters = [...new Set(points?.letters ?? [])];
  return (
    <ChartFrame
      title="Predicted and measured memory"
      study={study.name ?? ""}
      empty={points === undefined || points.numbers.length === 0}
      keys={letters.map((letter) => ({ word: LOOKS[letter].word, shape: LOOKS[letter].shape, colour: `state-${LOOKS[letter].colour}` }))}
      note={<span>Above the diagonal, a trial took more than predicted. A dashed line is the memory that a worker allows its trials. A pale mark is a trial that ran with other micro-batches than predicted, or not to the end. A click on a mark opens its trial.</span>}
      aside={<Measures measure={measure} />}
    >
      <Read reading={reading} what="the memory of trials">
        {() => points && <Points points={points} measure={measure} study={live.name} />}
      </Read>
    </ChartFrame>
  );
}

function Measures({ measure }: { measure: Measure }) {
  return (
    <div class="buttons" role="group" aria-label="What was measured">
      {(Object.keys(MEASURES) as Measure[]).map((one) => (
        <button key={one} type="button" aria-pressed={one === measure} title={MEASURES[one].says} onClick={() => setQuery({ measure: one === "reserved" ? "" : one })}>
          {MEASURES[one].word}
        </button>
      ))}
    </div>
  );
}

interface PointsProps {
  points: Measured;
  measure: Measure;
  study: string;
}

function Points({ points, measure, study }: PointsProps) {
  const [at, setAt] = useState<number>();
  const scale = useMemo(() => scaleOfPoints(points), [points]);
  const draw = useCallback((pen: Pen, size: Size, colour: Colour) => drawPoints(pen, size, colour, points, scale, measure, at), [points, scale, measure, at]);
  const stats = useMemo(() => statistics(points), [points]);
  if (points.numbers.length === 0) {
    return <p class="hint">No trial has both a prediction and a measurement of {MEASURES[measure].says}.</p>;
  }
  return (
    <>
      <p>{stats ? errorSentences(stats, points.comparable.filter((one) => !one).length).join(" ") : "No trial ran to its end with the micro-batches that were predicted."}</p>
      <p class="readout" aria-live="polite">
        {at === undefined ? (
          <span class="hint">
            The prediction is the required memory with a safety margin; the measurement is {MEASURES[measure].says}. Point at a mark to read it.
          </span>
        ) : (
          `Trial ${points.numbers[at]}: ${pointWords(points, at)}.`
        )}
      </p>
      <Canvas
        label={`Measured over predicted memory of ${points.numbers.length} trials. The table below lists them.`}
        height={(width) => Math.min(440, Math.max(280, width * 0.6))}
        draw={draw}
        onPoint={(place) => setAt(place && nearest(points, scale, place.size, place.x, place.y))}
        onClick={({ x, y, size }) => {
          const index = nearest(points, scale, size, x, y);
          if (index !== undefined) go(studyPath(study, "trials", points.numbers[index] ?? 0));
        }}
        class={at === undefined ? "" : "pointing"}
      />
      <PointTable points={points} study={study} />
    </>
  );
}

// In GiB; the same on both axes, so that the diagonal is one. What is predicted far beyond any limit,
// as of plans that were replaced, must not flatten the rest: it lies on the edge.
function scaleOfPoints(points: Measured): Scale {
  const compared = points.predicted.filter((_, index) => points.comparable[index]);
  const predicted = compared.length >= 3 ? [...compared, ...points.limits.filter((limit) => limit > 0)] : points.predicted;
  const values = [...predicted, ...points.measured].map((value) => value / GIB);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return scaleOf(values, high / low > 20);
}

function boxOf(size: Size, scale: Scale): Box {
  return innerBox(size.width, size.height, scale);
}

function placeOf(points: Measured, scale: Scale, box: Box, index: number): [number, number] {
  const x = share(scale, (points.predicted[index] ?? 0) / GIB);
  const y = share(scale, (points.measured[index] ?? 0) / GIB);
  const inside = (place: number) => Math.min(0.993, Math.max(0.007, place));
  return [box.left + inside(x) * box.width, box.top + box.height - inside(y) * box.height];
}

function nearest(points: Measured, scale: Scale, size: Size, px: number, py: number): number | undefined {
  const box = boxOf(size, scale);
  let found: number | undefined;
  let distance = NEAR;
  points.numbers.forEach((_, index) => {
    const [x, y] = placeOf(points, scale, box, index);
    const away = Math.hypot(x - px, y - py);
    if (away < distance) [found, distance] = [index, away];
  });
  return found;
}

function drawPoints(pen: Pen, size: Size, colour: Colour, points: Measured, scale: Scale, measure: Measure, at: number | undefined): void {
  const box = boxOf(size, scale);
  drawAxes(pen, box, scale, scale, { x: "Predicted, in GiB", y: `Measured (${MEASURES[measure].word.toLowerCase()}), in GiB` }, colour);
  within(pen, box, () => {
    drawDiagonal(pen, box, colour);
    drawLimits(pen, box, scale, points, colour);
    points.numbers.forEach((_, index) => {
      const look = LOOKS[points.letters[index] ?? "Q"];
      const [x, y] = placeOf(points, scale, box, index);
      pen.lineWidth = 1.6;
      pen.globalAlpha = points.comparable[index] ? 0.85 : 0.4;
      pen.fillStyle = colour(`state-${look.colour}`);
      pen.strokeStyle = colour(`state-${look.colour}`);
      drawMark(pen, look.shape, x, y, index === at ? 13 : 8);
    });
    pen.globalAlpha = 1;
  });
}

function drawDiagonal(pen: Pen, box: Box, colour: Colour): void {
  pen.strokeStyle = colour("soft");
  pen.lineWidth = 1.4;
  pen.beginPath();
  pen.moveTo(box.left, box.top + box.height);
  pen.lineTo(box.left + box.width, box.top);
  pen.stroke();
  pen.fillStyle = colour("soft");
  pen.font = FONT.replace("12px", "11px");
  pen.textAlign = "left";
  pen.textBaseline = "top";
  pen.fillText("more than predicted", box.left + 8, box.top + 6);
  pen.textAlign = "right";
  pen.textBaseline = "alphabetic";
  pen.fillText("less than predicted", box.left + box.width - 8, box.top + box.height - 8);
}

// Limits that differ by less than one in a hundred are one line.
function drawLimits(pen: Pen, box: Box, scale: Scale, points: Measured, colour: Colour): void {
  const limits: number[] = [];
  for (const limit of [...points.limits].sort((a, b) => a - b)) {
    if (limit > 0 && limit > (limits.at(-1) ?? 0) * 1.01) limits.push(limit);
  }
  pen.strokeStyle = colour("state-oom");
  pen.fillStyle = colour("state-oom");
  pen.lineWidth = 1.4;
  pen.textAlign = "right";
  pen.textBaseline = "alphabetic";
  for (const limit of limits.slice(0, 6)) {
    const y = box.top + box.height - share(scale, limit / GIB) * box.height;
    pen.setLineDash([6, 4]);
    pen.beginPath();
    pen.moveTo(box.left, y);
    pen.lineTo(box.left + box.width, y);
    pen.stroke();
    pen.setLineDash([]);
    pen.fillText(`limit ${bytes(limit)}`, box.left + box.width - 6, y - 4);
  }
}

const MOST_LISTED = 50;

// Those that exceeded their prediction the most come first.
function PointTable({ points, study }: { points: Measured; study: string }) {
  const [open, setOpen] = useState(false);
  const excess = (index: number) => (points.measured[index] ?? 0) / (points.predicted[index] ?? 1);
  const order = open ? points.numbers.map((_, index) => index).sort((a, b) => excess(b) - excess(a)) : [];
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Numbers, largest excess over the prediction first</summary>
      <Scroll label="Predicted and measured memory of trials">
        <table>
          <thead>
            <tr>
              {["Trial", "State", "Predicted", "Measured", "Limit"].map((head, index) => (
                <th key={head} scope="col" class={index > 1 ? "number" : undefined}>
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {order.slice(0, MOST_LISTED).map((index) => (
              <tr key={points.numbers[index]}>
                <td>
                  <Link to={studyPath(study, "trials", points.numbers[index] ?? 0)}>{points.numbers[index]}</Link>
                </td>
                <td>
                  <StateBadge letter={points.letters[index] ?? "Q"} />
                </td>
                {[points.predicted, points.measured, points.limits].map((values, column) => (
                  <td key={column} class="number">
                    {(values[index] ?? 0) > 0 ? bytes(values[index] ?? 0) : "unknown"}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  );
}
