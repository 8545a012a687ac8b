// A chart with two axes whose points are read with the pointer and opened with a click.
import { useCallback, useState } from "preact/hooks";
import { drawAxes, innerBox, share, within, type Box, type Scale } from "../../charts/axes";
import { Canvas, type Size } from "../../charts/canvas";
import type { Colour } from "../../charts/colours";
import type { Pen } from "../../charts/pen";

export interface Place {
  x: (value: number) => number;
  y: (value: number) => number;
  box: Box;
}

export function placeIn(box: Box, x: Scale, y: Scale): Place {
  return {
    box,
    x: (value) => box.left + share(x, value) * box.width,
    y: (value) => box.top + box.height - share(y, value) * box.height,
  };
}

export interface XyProps {
  label: string;
  x: Scale;
  y: Scale;
  xWord: string;
  yWord: string;
  height?: number;
  right?: number; // room to the right of the frame
  below?: number; // room below the axis
  // Draws within the frame. Keep it with useCallback, as it is drawn anew when it changes.
  paint: (pen: Pen, place: Place, colour: Colour) => void;
  // Draws around it: colour bars, names of lines.
  around?: (pen: Pen, place: Place, colour: Colour) => void;
  // Points that can be read; undefined: none.
  points?: { count: number; x: (index: number) => number; y: (index: number) => number };
  say?: (index: number) => string;
  open?: (index: number) => void;
}

const REACH = 14; // CSS pixels

export function Xy(props: XyProps) {
  const { label, x, y, xWord, yWord, height = 320, right, below = 0, paint, around, points, say, open } = props;
  const [hovered, setHovered] = useState<number>();
  const draw = useCallback(
    (pen: Pen, size: Size, colour: Colour) => {
      const box = innerBox(size.width, size.height - below, y, right);
      const place = placeIn(box, x, y);
      drawAxes(pen, box, x, y, { x: xWord, y: yWord }, colour);
      within(pen, box, () => paint(pen, place, colour));
      around?.(pen, place, colour);
    },
    [x, y, xWord, yWord, right, below, paint, around],
  );
  const find = (at: { x: number; y: number; size: Size }): number | undefined => {
    if (points === undefined) return undefined;
    const place = placeIn(innerBox(at.size.width, at.size.height - below, y, right), x, y);
    return nearestOf(points.count, (index) => place.x(points.x(index)) - at.x, (index) => place.y(points.y(index)) - at.y);
  };
  return (
    <div class={hovered !== undefined && open ? "pointing" : ""}>
      <Canvas
        label={label}
        height={height}
        draw={draw}
        onPoint={(at) => setHovered(at === undefined ? undefined : find(at))}
        onClick={(at) => {
          const index = find(at);
          if (index !== undefined) open?.(index);
        }}
      />
      {say && <p class="hint readout foreign">{hovered === undefined || hovered >= (points?.count ?? 0) ? "\u00a0" : say(hovered)}</p>}
    </div>
  );
}

// The point within reach that is nearest, by its distances in CSS pixels.
export function nearestOf(count: number, dx: (index: number) => number, dy: (index: number) => number): number | undefined {
  let found: number | undefined;
  let least = REACH * REACH;
  for (let index = 0; index < count; index += 1) {
    const distance = dx(index) ** 2 + dy(index) ** 2;
    if (distance < least) {
      least = distance;
      found = index;
    }
  }
  return found;
}

// Dots of one colour each as one path, so that thousands are drawn at once.
export function drawDots(pen: Pen, count: number, at: (index: number) => [number, number], bucket: (index: number) => number, colours: readonly string[], radius = 3): void {
  colours.forEach((colour, of) => {
    pen.beginPath();
    let any = false;
    for (let index = 0; index < count; index += 1) {
      if (bucket(index) !== of) continue;
      const [x, y] = at(index);
      pen.moveTo(x + radius, y);
      pen.arc(x, y, radius, 0, 2 * Math.PI);
      any = true;
    }
    pen.fillStyle = colour;
    if (any) pen.fill();
  });
}
