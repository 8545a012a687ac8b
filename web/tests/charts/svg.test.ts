import { describe, expect, it } from "vitest";
import { linearTicks, scaleFrom, share, ticksOf, valueAt } from "../../src/charts/axes";
import { ramp } from "../../src/charts/ramp";
import { compose, fileName, svgText } from "../../src/charts/save";
import { escapeXml, SvgPen } from "../../src/charts/svg";

describe("a pen that writes SVG", () => {
  it("draws paths where they are moved, turned and scaled to", () => {
    const pen = new SvgPen(100, 50);
    pen.save();
    pen.translate(10, 5);
    pen.scale(2);
    pen.lineWidth = 1.5;
    pen.setLineDash([4, 2]);
    pen.beginPath();
    pen.moveTo(0, 0);
    pen.lineTo(3, 4);
    pen.stroke();
    pen.restore();
    pen.beginPath();
    pen.rect(1, 2, 3, 4);
    pen.fill();
    const text = pen.text("t");
    expect(text).toContain('d="M10 5L16 13"');
    expect(text).toContain('stroke-width="3" stroke-dasharray="8 4"');
    expect(text).toContain('d="M1 2L4 2L4 6L1 6Z" fill="#000"');
  });

  it("clips what is drawn until the state is restored", () => {
    const pen = new SvgPen(10, 10);
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, 5, 5);
    pen.clip();
    pen.fillRect(1, 1, 1, 1);
    pen.restore();
    pen.fillRect(2, 2, 1, 1);
    const text = pen.text("t");
    expect(text.match(/clip-path="url\(#clip1\)"/g)).toHaveLength(1);
  });

  it("draws whole circles as two arcs", () => {
    const pen = new SvgPen(10, 10);
    pen.beginPath();
    pen.arc(5, 5, 2, 0, 2 * Math.PI);
    pen.fill();
    expect(pen.text("t")).toContain("M7 5A2 2 0 1 1 3 5A2 2 0 1 1 7 5");
  });

  it("writes texts that parse, whatever they hold", () => {
    const hostile = '<script>&"\u0000\u001b\ud800\ufffe';
    expect(escapeXml(hostile)).toBe("&lt;script&gt;&amp;&quot;\ufffd\ufffd\ufffd\ufffd");
    const pen = new SvgPen(10, 10);
    pen.font = '600 12px system-ui, "Segoe UI"';
    pen.textAlign = "right";
    pen.fillText(hostile, 1, 2);
    const parsed = new DOMParser().parseFromString(pen.text(hostile), "image/svg+xml");
    expect(parsed.querySelector("script")).toBeNull();
    expect(parsed.querySelector("text")?.getAttribute("text-anchor")).toBe("end");
  });
});

describe("charts as files", () => {
  it("puts charts below each other, with title and keys", () => {
    const drawing = { width: 100, height: 40, draw: (pen: { fillText(text: string, x: number, y: number): void }) => pen.fillText("inside", 0, 0) };
    const picture = compose("Title", [drawing, drawing], [{ word: "key", colour: "#123456", shape: "disc" }], () => "#fff");
    const text = svgText(picture, "Title");
    expect(text.match(/inside/g)).toHaveLength(2);
    expect(text).toContain(">Title</text>");
    expect(text).toContain(">key</text>");
  });

  it("names files without what file systems do not take", () => {
    expect(fileName(["a/b: c", "Träge"], "svg")).toBe("a-b-c-Tra-ge.svg");
    expect(fileName(["…"], "png")).toBe("chart.png");
  });
});

describe("axes", () => {
  it("has round ticks", () => {
    expect(linearTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticksOf(scaleFrom(1e-6, 1e-2, true, 0), 5).map(({ at }) => at)).toEqual([1e-6, 1e-5, 1e-4, 1e-3, 1e-2]);
    expect(linearTicks(1, 1, 5)).toEqual([]);
  });

  it("finds places and values again", () => {
    for (const scale of [scaleFrom(-3, 8, false), scaleFrom(1e-6, 1e-2, true), { kind: "choice" as const, choices: ["a", "b"] }]) {
      expect(valueAt(scale, share(scale, 1))).toBeCloseTo(1);
    }
    expect(scaleFrom(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, false)).toEqual({ kind: "linear", low: 0, high: 1 });
  });

  it("has colours whose lightness only grows", () => {
    const light = (colour: string) => [1, 3, 5].reduce((sum, at, index) => sum + Number.parseInt(colour.slice(at, at + 2), 16) * ([0.21, 0.72, 0.07][index] ?? 0), 0);
    for (const ground of ["light", "dark"] as const) {
      const steps = Array.from({ length: 20 }, (_, index) => light(ramp(index / 19, ground)));
      expect(steps).toEqual([...steps].sort((a, b) => a - b));
    }
  });
});
