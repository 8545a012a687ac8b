// What the fleet's page says of a worker, apart from how it looks.
import type { Worker } from "../../api/messages";
import { instant, int } from "../../api/values";

// Without a heartbeat for this long, the trial of a worker is in doubt.
const LATE_MS = 60_000;

export type Condition = "busy" | "idle" | "draining" | "drained" | "gone";

export const CONDITIONS: Record<Condition, { word: string; sign: string; colour: string; says: string }> = {
  busy: { word: "busy", sign: "▶", colour: "running", says: "It runs a trial." },
  idle: { word: "idle", sign: "○", colour: "queued", says: "It has no trial." },
  draining: { word: "draining", sign: "▽", colour: "pruned", says: "It finishes its trial and gets no other." },
  drained: { word: "drained", sign: "■", colour: "predicted", says: "It gets no trials until it is resumed." },
  gone: { word: "gone", sign: "✕", colour: "lost", says: "Its session has ended." },
};

export function conditionOf(worker: Worker): Condition {
  if (!worker.alive) return "gone";
  const busy = worker.trial !== undefined;
  if (worker.drained) return busy ? "draining" : "drained";
  return busy ? "busy" : "idle";
}

// Where the engine put the worker, by the names that docs/workers.md lists: "Slurm job 17, array
// task 3". "" where the name says nothing.
export function engineJob(name: string): string {
  const [, body = name, gpu] = /^(.*?)(?::gpu(\d+))?$/.exec(name) ?? [];
  const place = gpu === undefined ? "" : `, GPU ${gpu}`;
  const slurm = /^slurm-(\d+)(?:_(\d+))?(?:\.(\d+))?$/.exec(body);
  if (slurm) {
    const [, job, array, rank] = slurm;
    return `Slurm job ${job}${array === undefined ? "" : `, array task ${array}`}${rank === undefined ? "" : `, rank ${rank}`}${place}`;
  }
  const ray = /^ray-(.+)-(\d+)$/.exec(body);
  if (ray) return `Ray fleet ${ray[1]}, actor ${ray[2]}${place}`;
  const host = /^(.+):(?:GPU-|MIG-|cpu-)[0-9a-f-]+$/i.exec(body);
  if (host) return `host ${host[1]}`;
  // Kubernetes and SkyPilot name workers alike.
  const indexed = /^(.+)-(\d+)(?:\.(\d+))?$/.exec(body);
  if (indexed) {
    const [, job, index, node] = indexed;
    return `job ${job}, index ${index}${node === undefined ? "" : `, node ${node}`}${place}`;
  }
  return "";
}

export interface Use {
  allocated: number;
  reserved: number; // at least what is allocated
  capacity: number;
}

// Undefined where the worker's heartbeat has said nothing of its memory.
export function memoryUse(worker: Worker): Use | undefined {
  const allocated = int(worker.allocated_bytes);
  const reserved = Math.max(allocated, int(worker.reserved_bytes));
  const capacity = int(worker.capacity_bytes);
  return reserved > 0 && capacity > 0 ? { allocated, reserved, capacity } : undefined;
}

export function isLate(worker: Worker, now_ms: number): boolean {
  const last = instant(worker.last_heartbeat);
  return (worker.alive ?? false) && last !== undefined && now_ms - last > LATE_MS;
}

export interface Summary {
  workers: number; // alive
  gpus: number; // that these hold
  busy: number;
  idle: number;
  drained: number; // or draining
  gone: number;
  reserved: number; // of those that have said it
  capacity: number; // of the same ones
  unknown: number; // workers with a trial that have not said it
}

export function summarize(workers: readonly Worker[]): Summary {
  const summary: Summary = { workers: 0, gpus: 0, busy: 0, idle: 0, drained: 0, gone: 0, reserved: 0, capacity: 0, unknown: 0 };
  for (const worker of workers) {
    const condition = conditionOf(worker);
    if (condition === "gone") {
      summary.gone += 1;
      continue;
    }
    summary.workers += 1;
    summary.gpus += Math.max(1, int(worker.gpus));
    if (condition === "busy" || condition === "draining") summary.busy += 1;
    if (condition === "idle") summary.idle += 1;
    if (worker.drained) summary.drained += 1;
    const use = memoryUse(worker);
    if (use !== undefined) {
      summary.reserved += use.reserved;
      summary.capacity += use.capacity;
    } else if (worker.trial !== undefined) {
      summary.unknown += 1;
    }
  }
  return summary;
}

export interface Filter {
  text: string; // in the name, the device or the study
  condition: string; // a Condition, or "" for all
}

export function matches(worker: Worker, { text, condition }: Filter): boolean {
  if (condition !== "" && conditionOf(worker) !== condition) return false;
  const wanted = text.trim().toLowerCase();
  return wanted === "" || [worker.name, worker.device, worker.study].some((word) => (word ?? "").toLowerCase().includes(wanted));
}

export interface IdleReason {
  reason: string;
  names: string[];
}

// The workers that idle for one reason are one entry, the most frequent reason first.
export function idleReasons(workers: readonly Worker[]): IdleReason[] {
  const found = new Map<string, string[]>();
  for (const worker of workers) {
    if (conditionOf(worker) !== "idle" || (worker.idle_because ?? "") === "") continue;
    const reason = worker.idle_because ?? "";
    found.set(reason, [...(found.get(reason) ?? []), worker.name ?? ""]);
  }
  return [...found].map(([reason, names]) => ({ reason, names })).sort((a, b) => b.names.length - a.names.length);
}
