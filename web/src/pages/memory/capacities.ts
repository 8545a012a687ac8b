// Capacities of GPUs that the reader chooses, and how they are kept in the address.
import type { Worker } from "../../api/messages";
import { int } from "../../api/values";
import { bytes } from "../../format/format";

const GIB = 2 ** 30;
export const MOST_GPUS = 8;

export interface Preset {
  gib: number;
  gpus: string; // that have it
}

export const PRESETS: readonly Preset[] = [
  { gib: 8, gpus: "RTX 4060, RTX 3070" },
  { gib: 12, gpus: "RTX 3060, RTX 4070" },
  { gib: 16, gpus: "T4, V100, RTX 4080" },
  { gib: 24, gpus: "RTX 3090, RTX 4090, A10, L4" },
  { gib: 40, gpus: "A100 40 GB" },
  { gib: 48, gpus: "RTX A6000, L40S" },
  { gib: 80, gpus: "A100 80 GB, H100" },
  { gib: 141, gpus: "H200" },
];

export interface Gpu {
  capacity: number; // bytes
  word: string; // "12 GiB", "11.8 GiB"
  gpus: string; // "RTX 3060, RTX 4070", a worker's device, or ""
}

// "12", "12 GiB", "11.8gib", "12616466432B"; undefined where it is no capacity of a GPU.
export function readCapacity(text: string): number | undefined {
  const [, amount, unit = ""] = /^\s*(\d+(?:\.\d+)?)\s*(b|mib|mb|gib|gb|g|tib)?\s*$/i.exec(text) ?? [];
  if (amount === undefined) return undefined;
  const factors: Record<string, number> = { b: 1, mib: 2 ** 20, mb: 1e6, gb: 1e9, tib: 2 ** 40 };
  const capacity = Math.round(Number(amount) * (factors[unit.toLowerCase()] ?? GIB));
  return capacity >= 2 ** 28 && capacity <= 2 ** 42 ? capacity : undefined;
}

// How the address has it: GiB where that is exact.
export function capacityWord(capacity: number): string {
  const gib = capacity / GIB;
  return Number.isInteger(gib * 4) ? String(gib) : `${capacity}B`;
}

export function gpuOf(capacity: number, workers: readonly Worker[]): Gpu {
  const preset = PRESETS.find(({ gib }) => gib * GIB === capacity);
  const devices = [...new Set(workers.filter((worker) => workerCapacity(worker) === capacity).map(({ device = "" }) => device))];
  const gib = capacity / GIB;
  return {
    capacity,
    word: Number.isInteger(gib * 4) ? `${gib} GiB` : bytes(capacity),
    gpus: preset?.gpus ?? devices.filter((device) => device !== "").join(", "),
  };
}

// Of workers that are alive, without repetition, ascending.
export function workerCapacities(workers: readonly Worker[]): number[] {
  const capacities = workers.filter(({ alive }) => alive).map(workerCapacity);
  return [...new Set(capacities)].filter((capacity) => capacity > 0).sort((a, b) => a - b);
}

// What a worker reports varies by a few MiB with what others hold on its GPU; the quarter of a GiB
// below it does not, so that charts are not read again at each heartbeat. Less than a GiB is a limit
// of a worker on a processor, which does not vary.
export function workerCapacity({ capacity_bytes }: Worker): number {
  const capacity = int(capacity_bytes);
  return capacity < GIB ? capacity : Math.floor(capacity / (GIB / 4)) * (GIB / 4);
}

// What the address says, ascending; without a word, GPUs that many people have, and those of the
// workers.
export function chosenCapacities(words: readonly string[], workers: readonly Worker[]): number[] {
  const read = words.map(readCapacity).filter((capacity) => capacity !== undefined);
  const chosen = read.length > 0 ? read : [12 * GIB, 24 * GIB, 80 * GIB, ...workerCapacities(workers).slice(0, 3)];
  return [...new Set(chosen)].sort((a, b) => a - b).slice(0, MOST_GPUS);
}

// Which of the chosen GPUs is looked at closely: the one of the address, else 12 GiB, else the first.
export function focusOf(word: string, capacities: readonly number[]): number {
  const read = readCapacity(word);
  if (read !== undefined && capacities.includes(read)) return read;
  return capacities.includes(12 * GIB) ? 12 * GIB : (capacities[0] ?? 12 * GIB);
}
