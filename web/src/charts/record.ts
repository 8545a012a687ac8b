// Records what a canvas is told to draw, so that uPlot's pictures can be saved by the same pens as
// our own: a plot draws itself once more while its context and its paths are listened to.
import type uPlot from "uplot";
import type { Drawing, Pen } from "./pen";

type Step = (pen: Pen) => void;

const PATH_METHODS = ["moveTo", "lineTo", "arc", "rect", "closePath"] as const;
const PLAIN_METHODS = [...PATH_METHODS, "save", "restore", "translate", "rotate", "beginPath", "fillRect", "fillText", "setLineDash"] as const;
const PAINT_METHODS = ["fill", "stroke", "clip"] as const;
const PROPERTIES = ["fillStyle", "strokeStyle", "lineWidth", "lineCap", "lineJoin", "globalAlpha", "font", "textAlign", "textBaseline"] as const;

type Method = (...values: unknown[]) => unknown;

function invoke(pen: object, name: string, values: unknown[]): unknown {
  return (Reflect.get(pen, name) as Method).apply(pen, values);
}

// A Path2D that also knows its steps. It is made where one exists: not in tests without a browser.
function pathClass(native: typeof Path2D) {
  return class RecordedPath extends native {
    readonly steps: Step[] = [];

    constructor(from?: Path2D | string) {
      super(from);
      if (from instanceof RecordedPath) this.steps.push(...from.steps);
      for (const name of PATH_METHODS) {
        const draw = Reflect.get(this, name) as Method;
        const listen = (...values: unknown[]) => {
          this.steps.push((pen) => invoke(pen, name, values));
          return draw.apply(this, values);
        };
        Reflect.defineProperty(this, name, { value: listen });
      }
    }
  };
}

function isRecorded(path: unknown): path is { steps: Step[] } {
  return typeof path === "object" && path !== null && "steps" in path;
}

// What `context` is told while `act` runs. It draws as ever.
export function record(context: CanvasRenderingContext2D, act: () => void): Step[] {
  const steps: Step[] = [];
  const listen = (name: string, value: Method) => Reflect.defineProperty(context, name, { value, configurable: true });
  // It may have been told of colours and fonts before, and not be told again.
  for (const name of PROPERTIES) {
    const now: unknown = context[name];
    steps.push((pen) => Reflect.set(pen, name, now));
    Reflect.defineProperty(context, name, {
      configurable: true,
      get: () => Reflect.get(Object.getPrototypeOf(context) as object, name, context) as unknown,
      set: (value: unknown) => {
        Reflect.set(Object.getPrototypeOf(context) as object, name, value, context);
        const kept = typeof value === "object" ? "#888" : value;
        steps.push((pen) => Reflect.set(pen, name, kept));
      },
    });
  }
  for (const name of PLAIN_METHODS) {
    const draw = context[name] as Method;
    listen(name, (...values) => {
      steps.push((pen) => invoke(pen, name, values));
      return draw.apply(context, values);
    });
  }
  for (const name of PAINT_METHODS) {
    const draw = context[name] as Method;
    listen(name, (path, ...values) => {
      if (isRecorded(path)) steps.push((pen) => pen.beginPath(), ...path.steps);
      steps.push((pen) => pen[name]());
      return draw.apply(context, path === undefined ? values : [path, ...values]);
    });
  }
  const native = globalThis.Path2D;
  globalThis.Path2D = pathClass(native);
  try {
    act();
  } finally {
    globalThis.Path2D = native;
    for (const name of [...PROPERTIES, ...PLAIN_METHODS, ...PAINT_METHODS]) Reflect.deleteProperty(context, name);
  }
  return steps;
}

// The picture that `plot` shows now, as far as it is zoomed. Its steps are in the canvas's pixels.
export function recordPlot(plot: uPlot): Drawing {
  const steps = record(plot.ctx, () => plot.batch(() => plot.redraw(true, false)));
  const { width, height } = plot.ctx.canvas;
  const ratio = width / Math.max(1, plot.width);
  return {
    width: width / ratio,
    height: height / ratio,
    draw: (pen) => {
      pen.scale(1 / ratio, 1 / ratio);
      for (const step of steps) step(pen);
    },
  };
}
