// Which worker ran which attempt, and what became of its time.
import { useCallback, useMemo, useState } from "preact/hooks";
import type { GetTimelineResponse } from "../../api/messages";
import { double, int } from "../../api/values";
import { share, ticksOf, within, type Box, type Scale } from "../../charts/axes";
import { Canvas, type Size } from "../../charts/canvas";
import type { Colour } from "../../charts/colours";
import { ChartFrame, type FrameKey } from "../../charts/frame";
import { fitText, FONT, textWidth, type Pen } from "../../charts/pen";
import { count, duration, percent, plural, time } from "../../format/format";
import { prunedText } from "../../format/pruned";
import { Read } from "../../parts/parts";
import { queryWord, setQuery } from "../../router";
import { useReading } from "../../state/reading";
import { useSlowVersion } from "../../state/version";
import { Numbers, TrialLink } from "./numbers";
import { openTrial, useView, type View } from "./view";

export const USES: Record<string, { word: string; colour: string; mark: string }> = {
  U: { word: "useful", colour: "state-completed", mark: "" },
  O: { word: "out of memory", colour: "state-oom", mark: "✕" },
  P: { word: prunedText("PRUNER"), colour: "state-pruned", mark: "–" },
  F: { word: "failed", colour: "state-failed", mark: "■" },
  X: { word: "cancelled", colour: "state-cancelled", mark: "◇" },
  E: { word: "preempted", colour: "state-preempted", mark: "E" },
  L: { word: "lost", colour: "state-lost", mark: "?" },
  R: { word: "running", colour: "state-running", mark: "▸" },
};

export interface Bar {
  worker: number;
  trial: number;
  attempt: number;
  from: number; // Unix seconds
  to: number;
  use: string;
}

export interface Timeline {
  workers: string[];
  bars: Bar[];
  from: number;
  to: number;
}

// An attempt that runs goes on until now.
export function readTimeline(answer: GetTimelineResponse, now: number): Timeline {
  const uses = answer.uses ?? "";
  const bars = (answer.started ?? []).map((started, index): Bar => {
    const ended = double(answer.ended?.[index]);
    return {
      worker: answer.worker_indexes?.[index] ?? 0,
      trial: answer.numbers?.[index] ?? 0,
      attempt: answer.attempts?.[index] ?? 0,
      from: double(started),
      to: ended > 0 ? ended : Math.max(now, double(started)),
      use: uses[index] ?? "U",
    };
  });
  const from = bars.reduce((low, bar) => Math.min(low, bar.from), Number.POSITIVE_INFINITY);
  const to = bars.reduce((high, bar) => Math.max(high, bar.to), Number.NEGATIVE_INFINITY);
  return { workers: answer.workers ?? [], bars, from, to: to > from ? to : from + 1 };
}

// A window's share of the whole, moved and scaled but never out of it.
export function zoomed([from, to]: [number, number], around: number, factor: number): [number, number] {
  const wide = Math.min(1, Math.max(1e-4, (to - from) * factor));
  const at = Math.min(1 - wide, Math.max(0, around - (around - from) * (wide / (to - from))));
  return [at, at + wide];
}

export function TimelineChart() {
  const view = useView();
  const reading = useReading("AnalysisService/GetTimeline", { study: view.name, count: 10_000 }, useSlowVersion());
  const uses = Object.keys(USES).filter((use) => reading.data?.uses?.includes(use));
  const keys = uses.map((use): FrameKey => ({ word: `${USES[use]?.word ?? use}${USES[use]?.mark ? ` ${USES[use]?.mark}` : ""}`, colour: USES[use]?.colour ?? "text", shape: "square" }));
  const left = int(reading.data?.left_off);
  return (
    <ChartFrame
      title="Timeline by worker"
      study={view.name}
      empty={uses.length === 0}
      keys={keys}
      note={<span>{left > 0 && `${count(left)} earlier attempts are left off. `}Trials that are not chosen are pale. Drag over the chart to look closer.</span>}
    >
      <Read reading={reading} what="the timeline">
        {(answer) => <Loaded view={view} answer={answer} />}
      </Read>
    </ChartFrame>
  );
}

function Loaded({ view, answer }: { view: View; answer: GetTimelineResponse }) {
  const line = useMemo(() => readTimeline(answer, Date.now() / 1000), [answer]);
  if (line.bars.length === 0) return <p class="hint">No worker has run an attempt yet.</p>;
  return (
    <>
      <Zoomable view={view} line={line} />
      <Numbers
        heads={["Worker", "Trial", "Attempt", "Started", "Took", "Use"]}
        rows={() =>
          line.bars
            .slice(-50)
            .reverse()
            .map((bar) => [line.workers[bar.worker] ?? "", <TrialLink view={view} trial={bar.trial} />, bar.attempt, time(bar.from * 1000), duration(bar.to - bar.from), USES[bar.use]?.word ?? bar.use])
        }
        total={line.bars.length}
        more={busyText(line)}
      />
    </>
  );
}

// "gpu-0 was busy 93 % of the time"
function busyText(line: Timeline): string {
  const sums = line.workers.map(() => 0);
  for (const bar of line.bars) sums[bar.worker] = (sums[bar.worker] ?? 0) + bar.to - bar.from;
  const all = sums.reduce((total, sum) => total + sum, 0);
  return `The latest first. Workers were busy ${percent(Math.min(1, all / ((line.to - line.from) * Math.max(1, line.workers.length))))} of the time that is shown.`;
}

const ROW = 24;
const TOP = 6;
const BOTTOM = 30;

function boxOf(line: Timeline, { width, height }: Size): Box {
  const names = Math.min(width * 0.3, Math.max(...line.workers.map((name) => textWidth(name, 11))) + 10);
  return { left: names, top: TOP, width: width - names - 12, height: height - TOP - BOTTOM };
}

function Zoomable({ view, line }: { view: View; line: Timeline }) {
  const [said, setSaid] = useState("");
  const [start, setStart] = useState<number>();
  const asked = queryWord("window").split("-").map(Number);
  const window: [number, number] = asked.length === 2 && asked.every((one) => one >= 0 && one <= 1) && (asked[0] ?? 0) < (asked[1] ?? 0) ? [asked[0] ?? 0, asked[1] ?? 1] : [0, 1];
  const show = ([from, to]: [number, number]) => setQuery({ window: from <= 0 && to >= 1 ? "" : `${from.toFixed(5)}-${to.toFixed(5)}` });
  const span = line.to - line.from;
  const x = useMemo<Scale>(() => ({ kind: "time", low: line.from + window[0] * span, high: line.from + window[1] * span }), [line, window[0], window[1]]);
  const chosen = useMemo(() => chosenTrials(view), [view]);
  const draw = useCallback((pen: Pen, size: Size, colour: Colour) => drawTimeline(pen, boxOf(line, size), line, x, chosen, colour), [line, x, chosen]);
  const barAt = (at: { x: number; y: number; size: Size }): Bar | undefined => {
    const box = boxOf(line, at.size);
    const worker = Math.floor((at.y - box.top) / ROW);
    return line.bars.find((bar) => bar.worker === worker && at.x >= box.left + share(x, bar.from) * box.width - 1 && at.x <= box.left + share(x, bar.to) * box.width + 1);
  };
  const key = (event: KeyboardEvent) => {
    const middle = (window[0] + window[1]) / 2;
    const wide = window[1] - window[0];
    const move = (by: number): [number, number] => zoomed([window[0] + by * wide, window[1] + by * wide], middle + by * wide, 1);
    const next = { "+": () => zoomed(window, middle, 0.5), "-": () => zoomed(window, middle, 2), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), Escape: (): [number, number] => [0, 1] }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(next());
  };
  const shareOf = (at: { x: number; size: Size }) => {
    const box = boxOf(line, at.size);
    const within = Math.min(1, Math.max(0, (at.x - box.left) / box.width));
    return window[0] + within * (window[1] - window[0]);
  };
  const middle = (window[0] + window[1]) / 2;
  return (
    <div tabIndex={0} role="group" aria-label="Timeline; plus and minus zoom, arrow keys move, Escape shows all" onKeyDown={key}>
      <div class="buttons">
        <button type="button" onClick={() => show(zoomed(window, middle, 0.5))} aria-label="Look closer">+</button>
        <button type="button" onClick={() => show(zoomed(window, middle, 2))} aria-label="Show more" disabled={window[0] <= 0 && window[1] >= 1}>−</button>
        <button type="button" onClick={() => show([0, 1])} disabled={window[0] <= 0 && window[1] >= 1}>All</button>
      </div>
      <Canvas
        label={`${plural(line.bars.length, "attempt")} of ${plural(line.workers.length, "worker")}. The latest are listed below.`}
        height={TOP + BOTTOM + Math.max(1, line.workers.length) * ROW}
        draw={draw}
        onPoint={(at) => {
          const bar = at && barAt(at);
          setSaid(bar ? `${line.workers[bar.worker]}: trial ${bar.trial}, attempt ${bar.attempt}, ${USES[bar.use]?.word ?? bar.use}, ${duration(bar.to - bar.from)}, from ${time(bar.from * 1000)}` : "");
        }}
        onDown={(at) => setStart(shareOf(at))}
        onUp={(at) => {
          const end = shareOf(at);
          const bar = barAt(at);
          if (start !== undefined && Math.abs(end - start) > 0.01 * (window[1] - window[0])) show([Math.min(start, end), Math.max(start, end)]);
          else if (bar) openTrial(view, bar.trial);
          setStart(undefined);
        }}
      />
      <p class="hint readout foreign">{said || "\u00a0"}</p>
    </div>
  );
}

// undefined: all.
function chosenTrials(view: View): Set<number> | undefined {
  if (view.shown === view.table.total) return undefined;
  const chosen = new Set<number>();
  for (let row = 0; row < view.table.rows; row += 1) if (view.mask[row] === 1) chosen.add(view.table.numbers[row] ?? 0);
  return chosen;
}

export function drawTimeline(pen: Pen, box: Box, line: Timeline, x: Scale, chosen: ReadonlySet<number> | undefined, colour: Colour): void {
  const bottom = box.top + line.workers.length * ROW;
  pen.font = FONT.replace("12px", "11px");
  pen.textBaseline = "middle";
  line.workers.forEach((name, index) => {
    pen.fillStyle = index % 2 === 0 ? colour("sunken") : colour("surface");
    pen.fillRect(box.left, box.top + index * ROW, box.width, ROW);
    pen.fillStyle = colour("soft");
    pen.textAlign = "right";
    pen.fillText(fitText(name, box.left - 8, 11), box.left - 6, box.top + index * ROW + ROW / 2);
  });
  pen.textAlign = "center";
  pen.strokeStyle = colour("line");
  pen.lineWidth = 1;
  for (const { at, word } of ticksOf(x, Math.max(2, box.width / 110))) {
    const place = Math.round(box.left + share(x, at) * box.width) + 0.5;
    pen.beginPath();
    pen.moveTo(place, box.top);
    pen.lineTo(place, bottom + 5);
    pen.stroke();
    pen.fillStyle = colour("soft");
    pen.fillText(word, place, bottom + 15);
  }
  within(pen, box, () => {
    for (const bar of line.bars) drawBar(pen, box, bar, x, chosen === undefined || chosen.has(bar.trial), colour);
  });
  pen.globalAlpha = 1;
}

function drawBar(pen: Pen, box: Box, bar: Bar, x: Scale, chosen: boolean, colour: Colour): void {
  const left = box.left + share(x, bar.from) * box.width;
  const width = Math.max(1.2, box.left + share(x, bar.to) * box.width - left - 0.6);
  if (left > box.left + box.width || left + width < box.left) return;
  const top = box.top + bar.worker * ROW + 3;
  const use = USES[bar.use];
  pen.globalAlpha = chosen ? 1 : 0.2;
  pen.fillStyle = colour(use?.colour ?? "soft");
  pen.fillRect(left, top, width, ROW - 6);
  const words = [`${bar.trial} ${use?.mark ?? ""}`.trim(), use?.mark ?? ""].find((text) => text !== "" && textWidth(text, 11) + 6 <= width);
  if (words === undefined) return;
  pen.fillStyle = colour("surface");
  pen.textAlign = "center";
  pen.fillText(words, left + width / 2, top + (ROW - 6) / 2 + 0.5);
}
