// Marks of trials on canvases: the shapes that parts/states.tsx has in text.
import type { StateLook } from "../parts/states";
import type { Pen } from "./pen";

// Draws a mark of `size` pixels across, in the colour that `pen` has for strokes and fills.
export function drawMark(pen: Pen, shape: StateLook["shape"], x: number, y: number, size: number): void {
  const r = size / 2;
  pen.beginPath();
  switch (shape) {
    case "disc":
      pen.arc(x, y, r, 0, 2 * Math.PI);
      pen.fill();
      return;
    case "ring":
      pen.arc(x, y, r, 0, 2 * Math.PI);
      break;
    case "cross":
      pen.moveTo(x - r, y - r);
      pen.lineTo(x + r, y + r);
      pen.moveTo(x - r, y + r);
      pen.lineTo(x + r, y - r);
      break;
    case "triangle":
      pen.moveTo(x, y - r);
      pen.lineTo(x + r, y + r);
      pen.lineTo(x - r, y + r);
      pen.closePath();
      pen.fill();
      return;
    case "square":
      pen.rect(x - r * 0.85, y - r * 0.85, r * 1.7, r * 1.7);
      pen.fill();
      return;
    case "diamond":
      pen.moveTo(x, y - r);
      pen.lineTo(x + r, y);
      pen.lineTo(x, y + r);
      pen.lineTo(x - r, y);
      pen.closePath();
      break;
    case "dash":
      pen.moveTo(x - r, y);
      pen.lineTo(x + r, y);
      break;
  }
  pen.stroke();
}
