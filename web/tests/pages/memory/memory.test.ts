import { describe, expect, it } from "vitest";
import type { GetMemoryFitResponse, Parameter, QueryTrialsResponse, Trial } from "../../../src/api/messages";
import type { Grid } from "../../../src/charts/frontier/grid";
import { capacityWord, chosenCapacities, focusOf, gpuOf, readCapacity, workerCapacities } from "../../../src/pages/memory/capacities";
import { cutSentence, cutsOf, noCutSentence, shareOf, statement } from "../../../src/pages/memory/fit";
import { batchText, laddersOf, ladderSentence, stepsOf } from "../../../src/pages/memory/ladder";
import { chosenParams, comparedNames, marksOf } from "../../../src/pages/memory/marks";
import { errorSentences, measuredOf, riskSentence, statistics } from "../../../src/pages/memory/measured";

const G = 2 ** 30;

describe("capacities", () => {
  it.each([
    ["12", 12 * G],
    [" 11.75 GiB", 11.75 * G],
    ["24gb", 24e9],
    ["12616466432B", 12616466432],
    ["0", undefined],
    ["99999", undefined],
    ["twelve", undefined],
    ["12; drop", undefined],
  ])("are read: %s", (text, bytes) => {
    expect(readCapacity(text)).toBe(bytes);
  });
  it("come back from the address as they were", () => {
    for (const capacity of [12 * G, 11.75 * G, 24e9]) expect(readCapacity(capacityWord(capacity))).toBe(capacity);
  });
  const workers = [
    { alive: true, capacity_bytes: "12629508096", device: "RTX 3060" },
    { alive: true, capacity_bytes: "12616466432", device: "RTX 3060" },
    { capacity_bytes: String(80 * G), device: "H100" },
  ];
  it("of workers are rounded, so that heartbeats change nothing", () => {
    expect(workerCapacities(workers)).toEqual([11.75 * G]);
    expect(gpuOf(11.75 * G, workers)).toEqual({ capacity: 11.75 * G, word: "11.75 GiB", gpus: "RTX 3060" });
  });
  it("are those of the address, else usual ones and the workers'", () => {
    expect(chosenCapacities([], workers)).toEqual([11.75 * G, 12 * G, 24 * G, 80 * G]);
    expect(chosenCapacities(["80", "8", "8", "x"], workers)).toEqual([8 * G, 80 * G]);
    expect(focusOf("", [8 * G, 12 * G])).toBe(12 * G);
    expect(focusOf("8", [8 * G, 12 * G])).toBe(8 * G);
    expect(focusOf("80", [8 * G])).toBe(8 * G);
  });
});

describe("cuts", () => {
  const counts = (description: string, left = "0", lost = "5673") => ({
    fits: "20000",
    does_not_fit: "10899",
    cut: { parameter: "train.batch_size", description, misfits_removed: "10899", misfits_left: left, fits_lost: lost },
  });
  it("are sentences", () => {
    expect(cutSentence(counts("train.batch_size <= 16"))).toBe(
      "Cut train.batch_size to at most 16: this removes all 10,899 configurations that do not fit, and 5,673 of 20,000 that fit. Then all 14,327 that remain fit.",
    );
    expect(cutSentence(counts("train.batch_size <= 16", "12", "0"))).toBe(
      "Cut train.batch_size to at most 16: this removes 10,899 of 10,911 configurations that do not fit, and none that fit. Then 20,000 of 20,012 that remain fit.",
    );
    expect(cutSentence({ ...counts("train.batch_size <= 16"), unknown: "4" })).toContain("Then all 14,327 that remain and are known fit.");
    expect(cutSentence({ ...counts("without bert-large") })).toMatch(/^Drop bert-large from train.batch_size: /);
    expect(cutSentence(counts("something new"))).toMatch(/^Restrict train.batch_size: something new: /);
    expect(cutSentence({ fits: "1" })).toBe("");
  });
});

const cut = { parameter: "b", description: "b <= 16", misfits_removed: "1", fits_lost: "1" };
const fit: GetMemoryFitResponse = {
  configurations: "200",
  gpus: [
    { literal: { fits: "80", does_not_fit: "120", cut }, planned: { fits: "150", does_not_fit: "50" } },
    { literal: { fits: "200" }, planned: { fits: "200" } },
    {},
    { literal: { fits: "80", does_not_fit: "120", cut }, planned: { fits: "200" } },
    { literal: { fits: "80", does_not_fit: "111", unknown: "9", cut }, planned: { fits: "191", unknown: "9" } },
  ],
  models: [
    { name: "small", known: true, configurations: "150", planned_fits: [150, 150, 0, 150, 150].map(String) },
    { name: "large", known: true, configurations: "50", planned_fits: ["0", "50", "0", "50", "41"], smallest_planned_bytes: String(14 * G) },
    { name: "other", configurations: "9" },
  ],
};

describe("statement", () => {
  it("says what fits, and which models never do", () => {
    expect(statement(fit, 0)).toEqual([
      "80 of 200 configurations (40 %) fit with the full batch; with smaller micro-batches, 150 (75 %) fit.",
      "large never fits: it requires at least 14.0 GiB.",
      "All configurations of small fit with smaller micro-batches.",
    ]);
    expect(statement(fit, 1)).toEqual(["All 200 configurations fit with the full batch."]);
    expect(statement(fit, 2)).toEqual(["The memory of this search space is unknown."]);
  });
  it("counts what is unknown apart, and never as fitting", () => {
    expect(shareOf({ fits: "1", unknown: "3" })).toEqual({ fits: 1, misfits: 0, unknown: 3, total: 4 });
    expect(statement(fit, 4).slice(0, 2)).toEqual([
      "80 of 200 configurations (40 %) fit with the full batch; with smaller micro-batches, 191 (96 %) fit.",
      "The memory of 9 of 200 configurations is unknown on this GPU: the study would try them.",
    ]);
    const learned = (fits: number, misfits: number, unknown: number): GetMemoryFitResponse => {
      const counts = { fits: String(fits), does_not_fit: String(misfits), unknown: String(unknown) };
      return { gpus: [{ literal: counts, planned: counts }], models: [{ configurations: "1000", known: true, smallest_bytes: "24000000001" }] };
    };
    expect(statement(learned(0, 16, 984), 0)).toEqual([
      "None of 1,000 configurations is known to fit.",
      "The memory of 984 of 1,000 configurations is unknown on this GPU: the study would try them.",
    ]);
    expect(statement(learned(0, 0, 1000), 0)).toEqual(["The memory of all 1,000 configurations is unknown on this GPU: the study would try them."]);
  });
});

describe("advice", () => {
  it("says first that nothing has to be cut, where smaller micro-batches make all fit", () => {
    expect(noCutSentence(fit, 3, "plan")).toBe(
      "No cut is necessary: all 200 configurations run with smaller micro-batches at the same effective batch size. A training step then takes several forward and backward passes, which can be slower; how much slower is not known here.",
    );
    expect(noCutSentence(fit, 3, "strict")).toMatch(/^No cut would be necessary with the memory policy “plan”: /);
  });
  it("does not say so where something does not fit, is unknown, or fits anyway", () => {
    for (const index of [0, 1, 2, 4]) expect(noCutSentence(fit, index, "plan")).toBe("");
    expect(noCutSentence({ ...fit, models: [{ known: true }] }, 3, "plan")).toBe("");
  });
  it("says what each cut is for", () => {
    expect(cutsOf(fit, 0).map(({ goal, action }) => [goal, action])).toEqual([["to run with the full batch", "Cut b to at most 16"]]);
    expect(cutsOf({ gpus: fit.gpus ?? [], models: [{ known: true }] }, 0).map(({ goal }) => goal)).toEqual([""]);
  });
});

function memoryAnswer(): QueryTrialsResponse {
  const column = (name: string, numbers: number[], missing: number[] = []) => ({ name, numbers: numbers.map((gib) => gib * G), missing });
  return {
    numbers: [5, 4, 3, 2, 1],
    columns: [
      { name: "state", texts: ["COMPLETED", "PRUNED"], indexes: [0, 0, 1, 0, 0] },
      { name: "why", texts: ["OUT_OF_MEMORY"], indexes: [0, 0, 0, 0, 0], missing: [0, 1, 3, 4] },
      column("predicted_bytes", [10, 8, 4, 20, 4]),
      column("reserved_bytes", [9, 8.4, 4, 11, 0], [4]),
      column("limit_bytes", [12, 12, 12, 12, 12]),
    ],
  };
}

describe("measured", () => {
  const points = measuredOf(memoryAnswer(), "reserved");
  it("has the trials with both figures, and knows which can be compared", () => {
    expect(points.numbers).toEqual([5, 4, 3, 2]);
    expect(points.letters).toEqual(["C", "C", "O", "C"]);
    expect(points.comparable).toEqual([true, true, false, false]);
    expect(measuredOf(memoryAnswer(), "live").numbers).toEqual([]);
    expect(measuredOf({}, "live").numbers).toEqual([]);
  });
  it("is summed up", () => {
    const stats = statistics(points);
    expect(stats).toMatchObject({ trials: 2, above: 1 });
    expect(stats?.worst).toBeCloseTo(0.05);
    expect(stats && errorSentences(stats, 2).join(" ")).toBe(
      "In 2 trials, the prediction differs from the measurement by 5 % at the median. 1 trial (50 %) took more than predicted, at most 5 % more; 5 % more than predicted is enough for 95 % of the trials. At the median, the prediction is 17 % below the limit. The figures leave out 2 trials: they ran with other micro-batches than predicted, or not to the end.",
    );
    expect(statistics(measuredOf({}, "live"))).toBeUndefined();
  });
  it("says the risk", () => {
    expect(riskSentence(0, 0, 0)).toBe("No trial has started yet.");
    expect(riskSentence(10, 0, 0)).toBe("None of 10 started trials met an out-of-memory error.");
    expect(riskSentence(40, 4, 3)).toBe("4 of 40 started trials (10 %) met an out-of-memory error; 3 of them completed with smaller micro-batches.");
  });
});

const plan = (micro: number) => ({ effective_batch: "512", micro_batch: String(micro), precision: "PRECISION_FLOAT32" as const });

describe("ladder", () => {
  const trial: Trial = {
    number: "7",
    state: "TRIAL_STATE_COMPLETED",
    attempts: [
      {
        plan: plan(512),
        final_plan: plan(134),
        memory: { num_ooms: "2" },
        memory_records: [{ stage: "OOM Error" }, { stage: "replan", plan: plan(256) }, { stage: "replan", plan: plan(134) }],
      },
      { plan: plan(134), final_plan: { ...plan(134), checkpointing: true } },
    ],
  };
  it("writes batches as they are divided", () => {
    expect([512, 0, 128, 134].map((micro) => batchText(512, micro))).toEqual(["512", "512", "4 × 128", "3 × 134 + 110"]);
  });
  it("has each plan once, in order", () => {
    expect(stepsOf(trial).map(({ text }) => text)).toEqual(["512", "2 × 256", "3 × 134 + 110", "3 × 134 + 110, activation checkpointing"]);
  });
  it("has no step to a plan that nobody reported", () => {
    expect(stepsOf({ attempts: [{ plan: plan(512), final_plan: { effective_batch: "1", micro_batch: "1" } }] }).map(({ text }) => text)).toEqual(["512"]);
  });
  it("has the trials that stepped down", () => {
    const ladders = laddersOf([trial, { number: "8", attempts: [{ plan: plan(512) }] }, {}]);
    expect(ladders.map(({ trial: { number }, ooms }) => [number, ooms])).toEqual([["7", 2]]);
    expect(ladderSentence(ladders)).toBe("One trial ran out of memory or was split further; it completed.");
  });
});

describe("trials over the frontier", () => {
  const parameters: Parameter[] = [
    { name: "model", domain: { categorical_domain: { choices: [{ string_value: "a" }, { string_value: "b" }] } } },
    { name: "lr", domain: { float_domain: { low: 0, high: 1 } } },
  ];
  const grid: Grid = { x: "batch", y: "length", xs: [8, 16], ys: [128, 256], smooth: { x: false, y: false }, needed: [1, 1, 1, 1], gpus: [] };
  const answer: QueryTrialsResponse = {
    numbers: [3, 2, 1],
    columns: [
      { name: "state", texts: ["COMPLETED"], indexes: [0, 0, 0] },
      { name: "param:batch", numbers: [8, 12, 99] },
      { name: "param:length", numbers: [128, 256, 128] },
      { name: "param:model", texts: ["a", "b"], indexes: [0, 1, 0] },
    ],
  };
  const params = { model: { string_value: "a" }, lr: { double_value: 0.5 } };
  it("takes what the address says, and says what it cannot read", () => {
    const words: Record<string, string> = { "p.model": "c", "p.lr": "0.25" };
    const chosen = chosenParams(parameters, (name) => words[name] ?? "");
    expect(chosen.params).toEqual({ lr: { double_value: 0.25 } });
    expect(chosen.problems).toHaveLength(1);
  });
  it("compares what memory depends on, else the choices", () => {
    expect(comparedNames(grid, params, ["model", "batch"], parameters)).toEqual(["model"]);
    expect(comparedNames(grid, params, [], parameters)).toEqual(["model"]);
  });
  it("shows those with the same other parameters, within their cell", () => {
    const same = marksOf(answer, grid, params, ["model"], false);
    expect(same.shown.map(({ number }) => number)).toEqual([3]);
    expect(same.others).toBe(1);
    expect(Math.abs(same.shown[0]?.x ?? 9)).toBeLessThan(0.5);
    const all = marksOf(answer, grid, params, ["model"], true);
    expect(all.shown.map(({ number }) => number)).toEqual([3, 2]);
    expect(all.shown[1]?.x).toBe(0.5);
    // Along a number, a mark stays where its value is.
    const smooth = marksOf(answer, { ...grid, smooth: { x: true, y: false } }, params, ["model"], false);
    expect(smooth.shown[0]?.x).toBe(0);
  });
});
