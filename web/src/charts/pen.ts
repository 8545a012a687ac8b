// What own charts draw with: the part of a canvas's context that SvgPen (svg.ts) writes as SVG too,
// so that nothing is drawn twice.
type Shared =
  | "fillStyle" | "strokeStyle" | "lineWidth" | "lineCap" | "lineJoin" | "globalAlpha" | "font" | "textAlign" | "textBaseline"
  | "save" | "restore" | "translate" | "rotate" | "scale" | "beginPath" | "moveTo" | "lineTo" | "arc" | "rect" | "closePath"
  | "fillRect" | "fillText" | "setLineDash";

export interface Pen extends Pick<CanvasRenderingContext2D, Shared> {
  fill(): void;
  stroke(): void;
  clip(): void;
}

// A picture that any pen can draw, in CSS pixels from (0, 0).
export interface Drawing {
  width: number;
  height: number;
  draw(pen: Pen): void;
}

export const FONT = "12px system-ui, sans-serif";
export const STRONG_FONT = "600 14px system-ui, sans-serif";

// A pen cannot measure text: the width is of usual letters, for margins.
export function textWidth(text: string, size = 12): number {
  return text.length * size * 0.56;
}

// `text` cut to about `width` pixels.
export function fitText(text: string, width: number, size = 12): string {
  const letters = Math.max(1, Math.floor(width / (size * 0.56)));
  return text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`;
}
