// A canvas that fits its place, follows the theme, is sharp on any screen, and can be saved.
import { useEffect, useRef, useState } from "preact/hooks";
import { colours, type Colour } from "./colours";
import { useSavedAs } from "./frame";
import type { Pen } from "./pen";

export interface Size {
  width: number;
  height: number;
}

export interface PointerPlace {
  x: number;
  y: number;
  size: Size;
}

export interface CanvasProps {
  // What a screen reader says of the picture.
  label: string;
  height: number | ((width: number) => number);
  // It is drawn again when this function is another one: keep it with useCallback.
  draw: (pen: Pen, size: Size, colour: Colour) => void;
  least?: number; // width, in CSS pixels
  // Where the pointer is, in CSS pixels; undefined: it left.
  onPoint?: (place: PointerPlace | undefined) => void;
  onClick?: (place: PointerPlace) => void;
  onDown?: (place: PointerPlace) => void;
  onUp?: (place: PointerPlace) => void;
  class?: string;
}

// The width that an element has, followed as it changes.
export function useWidth(least = 200) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const measure = () => setWidth(Math.max(least, Math.floor(element.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [least]);
  return { place, width };
}

// Makes a canvas as large as `size` and returns its context, in CSS pixels and cleared.
export function prepare(canvas: HTMLCanvasElement, { width, height }: Size): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  const pixels = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  if (canvas.width !== pixels.width || canvas.height !== pixels.height) {
    canvas.width = pixels.width;
    canvas.height = pixels.height;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

export function Canvas({ label, height, draw, least = 200, onPoint, onClick, onDown, onUp, class: look = "" }: CanvasProps) {
  const { place, width } = useWidth(least);
  const canvas = useRef<HTMLCanvasElement>(null);
  const colour = colours.value;
  const tall = typeof height === "number" ? height : height(width);
  const size = { width, height: tall };
  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    const context = prepare(canvas.current, { width, height: tall });
    if (context !== null) draw(context, { width, height: tall }, colour);
  }, [draw, width, tall, colour]);
  useSavedAs(() => (width === 0 ? undefined : { ...size, draw: (pen) => draw(pen, size, colours.value) }));
  const at = (event: MouseEvent) => ({ x: event.offsetX, y: event.offsetY, size });
  return (
    <div class={`plot ${look}`} ref={place}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={label}
        onPointerMove={onPoint && ((event) => onPoint(at(event)))}
        onPointerLeave={onPoint && (() => onPoint(undefined))}
        onPointerDown={onDown && ((event) => onDown(at(event)))}
        onPointerUp={onUp && ((event) => onUp(at(event)))}
        onClick={onClick && ((event) => onClick(at(event)))}
      />
    </div>
  );
}
