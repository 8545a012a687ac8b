import { describe, expect, it } from "vitest";
import { record } from "../../src/charts/record";
import { SvgPen } from "../../src/charts/svg";

// A context as the browser has it: its properties and methods are of its class.
class Context {
  lineWidth = 1;
  drawn: string[] = [];
  private colour = "#111111";
  get fillStyle() {
    return this.colour;
  }
  set fillStyle(value: string) {
    this.colour = value;
  }
  strokeStyle = "#222222";
  lineCap = "butt";
  lineJoin = "miter";
  globalAlpha = 1;
  font = "10px sans-serif";
  textAlign = "left";
  textBaseline = "top";
  fill(path?: unknown) {
    this.drawn.push(path === undefined ? "fill" : "fill path");
  }
}
for (const name of ["stroke", "clip", "moveTo", "lineTo", "arc", "rect", "closePath", "save", "restore", "translate", "rotate", "beginPath", "fillRect", "fillText", "setLineDash"]) {
  Reflect.set(Context.prototype, name, function (this: Context) {
    this.drawn.push(name);
  });
}

class NativePath {
  moveTo() {}
  lineTo() {}
  arc() {}
  rect() {}
  closePath() {}
}

describe("recording of a canvas", () => {
  it("draws as ever, and again with another pen", () => {
    Reflect.set(globalThis, "Path2D", NativePath);
    const context = new Context() as unknown as CanvasRenderingContext2D;
    const steps = record(context, () => {
      context.fillStyle = "#ff0000";
      const path = new Path2D();
      path.rect(1, 1, 2, 2);
      context.fill(new Path2D(path));
      context.fillRect(5, 5, 1, 1);
    });
    expect((context as unknown as Context).drawn).toEqual(["fill path", "fillRect"]);
    expect(context.fillStyle).toBe("#ff0000");
    expect(globalThis.Path2D).toBe(NativePath);
    const pen = new SvgPen(10, 10);
    for (const step of steps) step(pen);
    expect(pen.text("t")).toContain('d="M1 1L3 1L3 3L1 3Z" fill="#ff0000"');
    expect(pen.text("t")).toContain('d="M5 5L6 5L6 6L5 6Z" fill="#ff0000"');
  });
});
