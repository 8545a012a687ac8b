import { describe, expect, it } from "vitest";
import type { Worker } from "../../../src/api/messages";
import { conditionOf, engineJob, idleReasons, isLate, matches, memoryUse, summarize } from "../../../src/pages/fleet/worker";

const GIB = 2 ** 30;

describe("engineJob", () => {
  it.each([
    ["slurm-17", "Slurm job 17"],
    ["slurm-17_3", "Slurm job 17, array task 3"],
    ["slurm-17.2", "Slurm job 17, rank 2"],
    ["slurm-17_3:gpu1", "Slurm job 17, array task 3, GPU 1"],
    ["ray-sentiment-4", "Ray fleet sentiment, actor 4"],
    ["my-job-3", "job my-job, index 3"],
    ["my-task-3.1", "job my-task, index 3, node 1"],
    ["host.example:GPU-8f0c2f5e", "host host.example"],
    ["host:cpu-3b9d01aa", "host host"],
    ["anything else", ""],
    ["", ""],
  ])("reads %s", (name, job) => {
    expect(engineJob(name)).toBe(job);
  });
});

describe("conditionOf", () => {
  it("tells a worker that finishes its trial from one that has ended it", () => {
    expect(conditionOf({ alive: true, trial: "0" })).toBe("busy");
    expect(conditionOf({ alive: true })).toBe("idle");
    expect(conditionOf({ alive: true, trial: 1, drained: true })).toBe("draining");
    expect(conditionOf({ alive: true, drained: true })).toBe("drained");
    expect(conditionOf({ drained: true, trial: 1 })).toBe("gone");
  });
});

describe("memoryUse", () => {
  it("is unknown without a heartbeat that says it", () => {
    expect(memoryUse({ capacity_bytes: "100" })).toBeUndefined();
    expect(memoryUse({ reserved_bytes: "5" })).toBeUndefined();
  });
  it("reserves at least what is allocated", () => {
    expect(memoryUse({ capacity_bytes: "100", allocated_bytes: "60" })).toEqual({ allocated: 60, reserved: 60, capacity: 100 });
  });
});

const fleet: Worker[] = [
  { name: "a", alive: true, trial: 1, study: "one", capacity_bytes: 12 * GIB, reserved_bytes: 6 * GIB, allocated_bytes: 5 * GIB },
  { name: "b", alive: true, trial: 2, study: "two", gpus: 4, capacity_bytes: 80 * GIB, drained: true },
  { name: "c", alive: true, idle_because: "paused", device: "NVIDIA H200" },
  { name: "d", alive: true, idle_because: "paused" },
  { name: "e", alive: true, idle_because: "does not fit" },
  { name: "f", drained: true },
];

describe("a fleet", () => {
  it("is summed up over the workers that are alive", () => {
    expect(summarize(fleet)).toEqual({
      workers: 5,
      gpus: 8,
      busy: 2,
      idle: 3,
      drained: 1,
      gone: 1,
      reserved: 6 * GIB,
      capacity: 12 * GIB,
      unknown: 1,
    });
  });
  it("says once why workers idle, most of them first", () => {
    expect(idleReasons(fleet)).toEqual([
      { reason: "paused", names: ["c", "d"] },
      { reason: "does not fit", names: ["e"] },
    ]);
  });
  it("is filtered by words and state", () => {
    const names = (text: string, condition: string) => fleet.filter((worker) => matches(worker, { text, condition })).map(({ name }) => name);
    expect(names(" H200", "")).toEqual(["c"]);
    expect(names("two", "")).toEqual(["b"]);
    expect(names("", "gone")).toEqual(["f"]);
    expect(names("", "draining")).toEqual(["b"]);
  });
});

describe("isLate", () => {
  it("holds for workers that are alive and silent", () => {
    const last_heartbeat = "2026-11-29T04:00:00Z";
    const at = Date.parse(last_heartbeat);
    expect(isLate({ alive: true, last_heartbeat }, at + 59_000)).toBe(false);
    expect(isLate({ alive: true, last_heartbeat }, at + 61_000)).toBe(true);
    expect(isLate({ last_heartbeat }, at + 61_000)).toBe(false);
    expect(isLate({ alive: true }, at)).toBe(false);
  });
});
