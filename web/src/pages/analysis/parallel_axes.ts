// The axes of parallel coordinates with their names and values.
import { share, ticksOf } from "../../charts/axes";
import type { Colour } from "../../charts/colours";
import { fitText, FONT, textWidth, type Pen } from "../../charts/pen";
import type { Layout, Lines } from "./parallel_lines";

export function drawAxisTexts(pen: Pen, lines: Lines, { box, xs }: Layout, colour: Colour): void {
  const room = (lines.axes.length > 1 ? box.width / (lines.axes.length - 1) : box.width) - 8;
  lines.axes.forEach(({ column, scale }, axis) => {
    const x = xs[axis] ?? 0;
    pen.strokeStyle = colour("soft");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(Math.round(x) + 0.5, box.top);
    pen.lineTo(Math.round(x) + 0.5, box.top + box.height);
    pen.stroke();
    const edge = axis === 0 ? box.left - 4 : 0;
    pen.font = column.objective ? `600 ${FONT}` : FONT;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = colour("text");
    pen.fillText(fitText(column.name, Math.min(room, edge === 0 ? room : 2 * edge + 20)), Math.max(x, textWidth(fitText(column.name, room)) / 2 + 2), 12);
    pen.font = FONT.replace("12px", "11px");
    for (const { at, word } of ticksOf(scale, 5)) {
      const y = box.top + box.height - share(scale, at) * box.height;
      const text = fitText(word, Math.min(room, 90), 11);
      // Values stand on the surface's colour, so that lines do not run through them.
      pen.fillStyle = colour("surface");
      pen.globalAlpha = 0.8;
      pen.fillRect(x + 4, y - 7, textWidth(text, 11) + 2, 14);
      pen.globalAlpha = 1;
      pen.textAlign = "left";
      pen.fillStyle = colour("text");
      pen.fillText(text, x + 5, y);
    }
    if (column.objective) {
      pen.textAlign = "center";
      pen.fillStyle = colour("soft");
      pen.fillText(column.minimized ? "lower is better" : "higher is better", Math.min(x, box.left + box.width), box.top + box.height + 16);
    }
  });
}
