// Draws many lines over several frames, as many in each as the machine manages in the frame's time.

const FRAME_MS = 16;
// What of a frame our own code may take for lines; the rest is the browser's, which paints them.
const LINES_MS = 5;
// Frames that are farther apart do not tell how long the lines between them took.
const IDLE_MS = 250;
const LEAST = 120;
const MOST = 4000;

// Lines for the next frame; learnt from this machine's frames, and shared by all charts.
let pace = 400;
let drawnAt = Number.NEGATIVE_INFINITY;

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
      pace = nextPace(pace, start - drawnAt);
      drawnAt = start;
      const to = Math.min(job.count, at + pace);
      job.draw(at, to);
      at = to;
      if (performance.now() - start > LINES_MS) pace = Math.max(LEAST, Math.round(pace * 0.7));
      if (at < job.count) this.frame = requestAnimationFrame(step);
    };
    step();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }
}

// Fewer lines after a frame that came late, since painting takes its time after our code has ended;
// slowly more while all come in time.
export function nextPace(now: number, sinceLast_ms: number): number {
  if (sinceLast_ms > IDLE_MS || sinceLast_ms < FRAME_MS / 2) return now;
  if (sinceLast_ms > FRAME_MS * 1.4) return Math.max(LEAST, Math.round(now * 0.6));
  return Math.min(MOST, Math.round(now * 1.06) + 1);
}
