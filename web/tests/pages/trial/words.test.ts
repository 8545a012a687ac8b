import { describe, expect, it } from "vitest";
import type { Trial } from "../../../src/api/messages";
import { excessText, oomFacts, outcomeText, planText, plansText, reasonOf, recordNote, secondsOf } from "../../../src/pages/trial/words";

const GIB = 2 ** 30;

describe("planText", () => {
  it("prints plans as hpo trial show does", () => {
    expect(planText({ effective_batch: "512", micro_batch: "134", precision: "PRECISION_FLOAT32" })).toBe("512 = 3 × 134 + 110");
    expect(planText({ effective_batch: "512", micro_batch: "128", checkpointing: true, precision: "PRECISION_BFLOAT16" })).toBe("512 = 4 × 128, checkpointing, bfloat16");
    expect(planText({ effective_batch: "8", micro_batch: "8" })).toBe("8 = 1 × 8");
  });

  it("does not divide by a micro-batch that is missing", () => {
    expect(planText({ effective_batch: "2" })).toBe("2 = 2 × 1");
  });
});

describe("plansText", () => {
  it("says a second plan only where it differs", () => {
    const plan = { effective_batch: "512", micro_batch: "512" };
    expect(plansText({ plan, final_plan: plan }, {})).toBe("512 = 1 × 512");
    expect(plansText({ plan, final_plan: { effective_batch: "512", micro_batch: "32" } }, {})).toBe("512 = 1 × 512, then 512 = 16 × 32");
  });

  it("is empty for a program that knows of no batch", () => {
    const plan = { effective_batch: "1", micro_batch: "1" };
    expect(plansText({ plan }, {})).toBe("");
    expect(plansText({ plan }, { "train.batch_size": { int_value: "1" } })).toBe("1 = 1 × 1");
  });

  it("is empty for an imported trial, whose plan nobody knows", () => {
    const plan = { effective_batch: "1", micro_batch: "1" };
    expect(plansText({ worker: "imported", plan }, { "train.batch_size": { int_value: "16" } })).toBe("");
  });
});

describe("reasonOf", () => {
  it("finds the error of the last traceback", () => {
    const message = 'the program exited with status 1; its last output:\nTraceback (most recent call last):\n  File "a.py", line 5\n    raise ValueError()\nValueError: no\nbye';
    expect(reasonOf(message)).toBe("ValueError: no");
  });

  it("takes the last line, after what the worker says of a program", () => {
    expect(reasonOf("one\ntwo\n")).toBe("two");
    expect(reasonOf("the program exited with status 2; its last output:\nusage\nbad option")).toBe("the program exited with status 2; its last output: bad option");
  });
});

describe("outcomeText", () => {
  it("says why a trial was pruned", () => {
    expect(outcomeText({ stopped_by_pruner: { pruner: "median", step: "40", metrics: { loss: 0.5 } } }, {})).toBe(
      "It was pruned by the median pruner at step 40, because others were better there: loss 0.5.",
    );
    expect(outcomeText({ stopped_by_pruner: { pruner: "time limit", step: "40" } }, {})).toBe("It was pruned at step 40, because its time limit was used up.");
  });

  it("tells a predicted error from one that was met", () => {
    const predicted = { predicted: true, needed_bytes: String(14 * GIB), limit_bytes: String(12 * GIB) };
    expect(outcomeText({ out_of_memory: predicted }, {})).toBe("It was pruned before it started: it needs 14.0 GiB of GPU memory, and 12.0 GiB is allowed.");
    const met = { phase: "backward", step: "3", requested_bytes: String(GIB), peak_bytes: String(11 * GIB), limit_bytes: String(12 * GIB) };
    expect(outcomeText({ out_of_memory: met }, {})).toBe(
      "It was pruned, because it ran out of GPU memory in backward at step 3: it requested 1.00 GiB more at a peak of 11.0 GiB, and 12.0 GiB is allowed.",
    );
    const smallest = { ...met, plan: { effective_batch: "512", micro_batch: "1" } };
    expect(outcomeText({ out_of_memory: smallest }, {})).toContain("at step 3, even with the batch 512 = 512 × 1: it requested");
    expect(outcomeText({ out_of_memory: { kind: "OOM_KIND_HOST", error_message: "x\nkilled" } }, {})).toBe("It was pruned, because it ran out of host memory: killed");
  });

  it("says that a completed trial recovered", () => {
    const trial: Trial = { attempts: [{ memory: { num_ooms: "1" }, final_plan: { effective_batch: "512", micro_batch: "32" } }] };
    expect(outcomeText({ completed: { metrics: { f1: 1 } } }, trial)).toBe("It ran to its end. It met 1 out-of-memory error on the way and recovered: the last plan was 512 = 16 × 32.");
    expect(outcomeText({ completed: {} }, {})).toBe("It reported no metrics.");
  });

  it("says the class and the reason of a failure", () => {
    expect(outcomeText({ failed: { failure_class: "FAILURE_CLASS_DIVERGED", message: "the loss is not a number" } }, {})).toBe("The training diverged. the loss is not a number");
    expect(outcomeText({ cancelled: { reason: "too slow" } }, {})).toBe("It was cancelled: too slow");
  });
});

describe("facts", () => {
  it("leaves out what is not known of an error", () => {
    const facts = oomFacts({ kind: "OOM_KIND_LATE_PEAK", limit_bytes: String(GIB) }, {});
    expect(facts).toEqual([
      ["Kind", "late peak"],
      ["Step", "0"],
      ["Limit", "1.00 GiB"],
    ]);
  });

  it("says how far metrics are from constraints", () => {
    expect(excessText({ metric: "ms", at_most: 30 }, { ms: 31.5 })).toBe("ms must be at most 30, and is 31.5.");
    expect(excessText({ metric: "ms", at_most: 30 }, { ms: 30 })).toBe("");
    expect(excessText({ metric: "ms", at_least: 1, at_most: 30 }, {})).toBe("ms must be at least 1 and at most 30, and was not reported.");
    expect(excessText({ metric: "ms", at_most: 30 }, { ms: "NaN" })).toContain("not a number");
  });

  it("says what a record of memory adds", () => {
    expect(recordNote({ plan: { effective_batch: "4", micro_batch: "2" }, needed_bytes: String(GIB) })).toBe("batch 4 = 2 × 2, needed 1.00 GiB");
  });
});

it("knows how long a trial took, where its times are known", () => {
  const [started, ended] = ["2026-11-20T08:00:00Z", "2026-11-20T08:01:30Z"];
  expect(secondsOf({ started, ended }, 0)).toBe(90);
  expect(secondsOf({ started }, Date.parse(ended))).toBe(90);
  expect(secondsOf({}, 0)).toBeUndefined();
  expect(secondsOf({ origin: "optuna:a#1", started, ended }, 0)).toBe(90);
  // Imported without times.
  expect(secondsOf({ origin: "optuna:a#1", started, ended: started }, 0)).toBeUndefined();
});
