// Draws many lines over several frames, as many in each as the machine manages in the frame's time.

// A frame that takes more than 16 ms comes late. How long lines take varies: this leaves a margin.
const AIM_MS = 9;
const LEAST = 120;
const MOST = 4000;

// Lines for the next frame; learnt from this machine's frames, and shared by all charts.
let pace = 400;

export interface Job {
  count: number;
  draw: (from: number, to: number) => void;
}

export class Painter {
  private frame = 0;

  // Draws the first lines at once and the rest in the next frames; an earlier job ends.
  start(job: Job): void {
    this.stop();
    let at = 0;
    const step = () => {
      const start = performance.now();
      const lines = Math.min(job.count - at, pace);
      job.draw(at, at + lines);
      at += lines;
      afterPainting(() => {
        pace = nextPace(pace, lines, performance.now() - start);
      });
      if (at < job.count) this.frame = requestAnimationFrame(step);
    };
    step();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }
}

const painted = new MessageChannel();
const waiting: (() => void)[] = [];
painted.port1.onmessage = () => waiting.shift()?.();

// A message waits until the frame has been painted, which is most of the work of lines.
function afterPainting(action: () => void): void {
  waiting.push(action);
  painted.port2.postMessage(0);
}

// Fewer lines after a frame that took long, in proportion; slowly more while all are quick.
export function nextPace(now: number, lines: number, frame_ms: number): number {
  if (frame_ms > AIM_MS) return Math.max(LEAST, Math.round(now * Math.max(0.5, AIM_MS / frame_ms)));
  if (lines < now) return now;
  return Math.min(MOST, Math.round(now * 1.03) + 1);
}
