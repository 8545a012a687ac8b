// Parallel coordinates: a line for each trial, an axis for each parameter and objective. What is
// brushed on axes filters the whole page.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useWidth } from "../../charts/canvas";
import { colours } from "../../charts/colours";
import { ChartFrame, useSavedAs } from "../../charts/frame";
import { rampSteps } from "../../charts/ramp";
import { count, plural } from "../../format/format";
import { paced } from "../../state/pace";
import { theme } from "../../state/theme";
import { NumbersOfTrials } from "./numbers";
import { AXIS_ROOM, COLOURS, drawAll, layOut, makeLines, MOST_LINES, shownLines, type Lines } from "./parallel_lines";
import { Stage } from "./parallel_stage";
import { useView } from "./view";
import { WrittenRanges } from "./written";

const HEIGHT = 400;
// The address, and with it the other charts, follow a brush at most this often: browsers refuse more
// than some 200 changes of the address in half a minute.
const FOLLOW_MS = 250;

export function Parallel() {
  const view = useView();
  const lines = useMemo(() => makeLines(view.table, view.columns, view.objective), [view.table, view.columns, view.objective]);
  const steps = useMemo(() => styles(), [theme.value]);
  return (
    <ChartFrame
      title="Parallel coordinates"
      study={view.name}
      keys={[
        { word: `best ${view.objective.name}`, colour: steps[0] ?? "#888", shape: "dash" },
        { word: "middle", colour: steps[COLOURS >> 1] ?? "#888", shape: "dash" },
        { word: "worst", colour: steps[COLOURS - 1] ?? "#888", shape: "dash" },
        { word: "no value, or not chosen", colour: "line", shape: "dash" },
      ]}
      note={
        <span>
          {view.table.rows > MOST_LINES && `The newest ${count(MOST_LINES)} trials are drawn. `}
          Drag along an axis to choose, at several axes if need be; with the keyboard: Tab to an end of an axis, then the arrow keys, and Escape to choose all again.
        </span>
      }
    >
      <ParallelStage lines={lines} steps={steps} />
      <NumbersOfTrials view={view} />
    </ChartFrame>
  );
}

// From the best to the worst, and at last without a value. The best stand out of either ground.
function styles(): string[] {
  const ramp = rampSteps(COLOURS, theme.value);
  return [...(theme.value === "dark" ? ramp.reverse() : ramp), colours.value("soft")];
}

function ParallelStage({ lines, steps }: { lines: Lines; steps: string[] }) {
  const view = useView();
  const { place, width: room } = useWidth();
  const width = room === 0 ? 0 : Math.max(room, lines.axes.length * AXIS_ROOM);
  const root = useRef<HTMLDivElement>(null);
  const stage = useRef<Stage | undefined>(undefined);
  const [shown, setShown] = useState(view.shown);
  const selectNow = useRef(view.select);
  selectNow.current = view.select;
  const written = useMemo(() => new WrittenRanges(view.filter.ranges), []);
  const follow = useMemo(() => {
    const write = () => {
      if (stage.current === undefined) return;
      const ranges = new Map(stage.current.current());
      written.wrote(ranges);
      selectNow.current(ranges);
    };
    return paced(write, FOLLOW_MS);
  }, []);
  useEffect(() => () => follow.cancel(), []);
  const colour = colours.value;
  useEffect(() => {
    const [base, top, texts] = root.current?.querySelectorAll("canvas") ?? [];
    const strips = [...(root.current?.querySelectorAll<HTMLElement>(".strip") ?? [])];
    if (!base || !top || !texts || width === 0) return;
    const made = new Stage({ base, top, texts, strips }, { table: view.table, lines, width, height: HEIGHT, styles: steps, colour }, view.filter.ranges, setShown);
    stage.current = made;
    return () => made.stop();
  }, [lines, width, steps, colour]);
  // The address may change by other means: a link, a condition that is taken away.
  useEffect(() => {
    if (!written.isOwn(view.filter.ranges)) stage.current?.set(view.filter.ranges);
  }, [view.filter]);
  useSavedAs(() =>
    width === 0
      ? undefined
      : {
          width,
          height: HEIGHT,
          draw: (pen) => drawAll(pen, lines, layOut(lines.axes.length, width, HEIGHT), shownLines(lines, view.mask), steps, colours.value),
        },
  );
  return (
    <>
      <div ref={place} />
      <div class="scroll parallel-scroll">
        <div class="parallel" ref={root}>
          {["lines", "chosen lines", "axes"].map((layer, index) => (
            <canvas key={layer} role={index === 0 ? "img" : undefined} aria-hidden={index > 0} aria-label={index === 0 ? "A line for each trial over all parameters and objectives. The numbers are below." : undefined} />
          ))}
          {lines.axes.map(({ column }, axis) => (
            <Strip key={column.name} name={column.name} axis={axis} stage={() => stage.current} changed={follow} />
          ))}
        </div>
      </div>
      <p class="hint readout" role="status">
        {plural(shown, "trial")} of {count(view.table.rows)} chosen
      </p>
    </>
  );
}

interface StripProps {
  name: string;
  axis: number;
  stage: () => Stage | undefined;
  changed: () => void;
}

const REACH = 0.03; // of an axis: how near an end a pointer takes it
const STEPS: Record<string, number> = { ArrowUp: 0.02, ArrowRight: 0.02, ArrowDown: -0.02, ArrowLeft: -0.02, PageUp: 0.1, PageDown: -0.1 };

// An axis's brush: dragged over the axis, moved within it, or by an end; both ends are sliders.
function Strip({ name, axis, stage, changed }: StripProps) {
  const drag = useRef<((at: number) => [number, number]) | undefined>(undefined);
  const begin = (event: PointerEvent) => {
    const now = stage();
    if (now === undefined || event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    const [low, high] = now.extent(axis);
    const at = now.shareAt(axis, event.clientY);
    const chosen = low > 0 || high < 1;
    if (chosen && Math.abs(at - low) < REACH) drag.current = (to) => [to, high];
    else if (chosen && Math.abs(at - high) < REACH) drag.current = (to) => [low, to];
    else if (chosen && at > low && at < high) drag.current = (to) => moved(low, high, to - at);
    else drag.current = (to) => [at, to];
  };
  const move = (event: PointerEvent) => {
    const now = stage();
    if (now === undefined || drag.current === undefined) return;
    now.brush(axis, ...drag.current(now.shareAt(axis, event.clientY)));
    changed();
  };
  const end = () => {
    drag.current = undefined;
    changed();
  };
  const key = (event: KeyboardEvent, lower: boolean) => {
    const now = stage();
    if (now === undefined) return;
    const [low, high] = now.extent(axis);
    const step = STEPS[event.key];
    const at = lower ? low : high;
    const to = step !== undefined ? at + Math.sign(step) * Math.max(Math.abs(step), now.leastStep(axis)) : event.key === "Home" ? 0 : event.key === "End" ? 1 : undefined;
    if (event.key === "Escape" || event.key === "Delete") now.brush(axis, 0, 1);
    else if (to === undefined) return;
    else if (lower) now.brush(axis, Math.min(to, high), high);
    else now.brush(axis, low, Math.max(to, low));
    event.preventDefault();
    changed();
  };
  return (
    <div
      class="strip"
      title={`${name}: drag to choose, double-click to choose all`}
      onPointerDown={begin}
      onPointerMove={move}
      onPointerUp={end}
      onPointerCancel={end}
      onDblClick={() => {
        stage()?.brush(axis, 0, 1);
        changed();
      }}
    >
      <div class="brush" />
      {[true, false].map((lower) => (
        <div
          key={String(lower)}
          class="end"
          role="slider"
          tabIndex={0}
          aria-orientation="vertical"
          aria-label={`${name}: ${lower ? "lower" : "upper"} end`}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={lower ? 0 : 100}
          onKeyDown={(event) => key(event, lower)}
        />
      ))}
    </div>
  );
}

// A brush of the same length, held within the axis.
function moved(low: number, high: number, by: number): [number, number] {
  const held = Math.min(1 - high, Math.max(-low, by));
  return [low + held, high + held];
}
