// Draws many lines over several frames, as many in each as the machine manages in the frame's time.

// A frame's time, and what is left of it for lines.
const FRAME_MS = 16;
const LINES_MS = 6;
const LEAST = 100;
const MOST = 4000;

// What this machine draws in a frame; learnt, and shared by all charts.
let pace = 500;

export interface Job {
  count: number;
  draw: (from: number, to: number) => void;
}

export class Painter {
  private frame = 0;

  // Draws the first lines at once and the rest in the next frames; an earlier job ends.
  start(job: Job, finished: () => void = () => {}): void {
    this.stop();
    let at = 0;
    let before = 0;
    const step = (now: number) => {
      // Frames come late where the last one's lines took too long: the picture is made after us.
      if (before > 0) pace = nextPace(pace, now - before);
      before = now;
      const start = performance.now();
      const to = Math.min(job.count, at + pace);
      job.draw(at, to);
      at = to;
      if (performance.now() - start > LINES_MS) pace = Math.max(LEAST, Math.round(pace * 0.7));
      if (at < job.count) this.frame = requestAnimationFrame(step);
      else finished();
    };
    step(0);
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }
}

export function nextPace(now: number, took_ms: number): number {
  if (took_ms > FRAME_MS * 1.5) return Math.max(LEAST, Math.round(now * 0.7));
  return Math.min(MOST, Math.round(now * 1.15));
}
