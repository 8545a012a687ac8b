import { describe, expect, it } from "vitest";
import { canonical, Recorded, type RecordedPage } from "../../src/api/recorded";

const page: RecordedPage = {
  calls: [
    { method: "StudyService/GetStudy", request: { name: "a" }, answer: { study: { name: "a", objectives: [{ metric: "loss" }], sequence: "7" } } },
    { method: "AnalysisService/GetImportance", request: { study: "a" }, answer: { metric: "loss", trials: "3" } },
    { method: "AnalysisService/GetCurves", request: { study: "a", count: 200 }, answer: { metric: "loss", curves: [{ number: 0 }, { number: 2 }, { number: 3 }] } },
    {
      method: "AnalysisService/GetMemoryFit",
      request: { study: "a", capacities: ["8", "12", "24"] },
      answer: { models: [{ name: "m", literal_fits: ["1", "2", "3"] }], gpus: [{ capacity_bytes: "8" }, { capacity_bytes: "12" }, { capacity_bytes: "24" }] },
    },
    { method: "StudyService/GetTrial", request: { study: "a", number: "2" }, answer: { trial: { number: "2", state: "TRIAL_STATE_COMPLETED" } } },
  ],
  trials: [
    {
      numbers: [0, 1, 2],
      columns: [
        { name: "state", texts: ["COMPLETED", "FAILED"], indexes: [0, 1, 0] },
        { name: "param:lr", numbers: [0.1, 0.01, 0.001] },
        { name: "param:model", texts: ["b", "a"], indexes: [0, 0, 1], missing: [1] },
        { name: "value", numbers: [3, 0, 1], missing: [1] },
        { name: "started", numbers: [1_796_000_000, 0, 1_795_900_000], missing: [1] }, // 2026-11-30 00:53:20 and 2026-11-28 21:06:40 UTC
      ],
      all_columns: [
        { name: "state", kind: "COLUMN_KIND_FIELD" },
        { name: "lr", kind: "COLUMN_KIND_PARAMETER", numeric: true },
        { name: "model", kind: "COLUMN_KIND_PARAMETER" },
        { name: "acc", kind: "COLUMN_KIND_METRIC" },
      ],
    },
    { numbers: [3], columns: [{ name: "state", texts: ["COMPLETED"], indexes: [0] }, { name: "param:lr", numbers: [0.5] }, { name: "value", numbers: [2] }] },
  ],
};

describe("recorded answers", () => {
  const source = new Recorded(page);
  const query = (request: object) => source.call("StudyService/QueryTrials", { study: "a", ...request });

  it("finds a request whatever its order, defaults and amounts", async () => {
    expect(canonical("M", { b: 1, a: { d: "", c: "x" } }, "")).toBe(canonical("M", { a: { c: "x" }, b: "1", count: 5 }, ""));
    expect(await source.call("AnalysisService/GetImportance", { study: "a", metric: "loss", method: "IMPORTANCE_METHOD_PED_ANOVA" })).toMatchObject({ trials: "3" });
    await expect(source.call("AnalysisService/GetImportance", { study: "a", method: "IMPORTANCE_METHOD_FANOVA" })).rejects.toMatchObject({ code: "UNIMPLEMENTED" });
    await expect(source.call("StudyService/GetTrial", { study: "a", number: 1 })).rejects.toMatchObject({ code: "NOT_FOUND" });
    expect((await source.call("StudyService/ListStudies", {})).studies).toHaveLength(1);
  });

  it("sorts with missing values last in either direction", async () => {
    expect((await query({ sort: "value" })).numbers).toEqual([2, 3, 0, 1]);
    expect((await query({ sort: "-value" })).numbers).toEqual([0, 3, 2, 1]);
    expect((await query({ sort: "model" })).numbers).toEqual([2, 0, 1, 3]);
  });

  it("filters as the server does: no condition holds for a trial without the value", async () => {
    expect((await query({ where: ["model!=a"] })).numbers).toEqual([0]);
    expect((await query({ where: ["state=completed", "lr>=0.1"] })).numbers).toEqual([0, 3]);
    expect((await query({ where: ["acc>1"] })).matching).toBe("0");
    expect((await query({ where: ["started>=2026-11-29"] })).numbers).toEqual([0]);
    expect((await query({ where: ["started<2026-11-30T01:53:20+01:00"] })).numbers).toEqual([2]);
    expect((await query({ where: ["started<2026-11-28 21:06:40.5"] })).numbers).toEqual([2]);
    expect((await query({ where: ["started=1796000000"] })).numbers).toEqual([0]);
    await expect(query({ where: ["started>yesterday"] })).rejects.toMatchObject({ code: "INVALID_ARGUMENT", message: expect.stringContaining("a date or time") });
    await expect(query({ where: ["lr>x"] })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await expect(query({ where: ["other=1"] })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await expect(query({ where: ["lr"] })).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  it("pages forward, backward and from the end", async () => {
    const first = await query({ page_size: 3 });
    expect(first).toMatchObject({ numbers: [0, 1, 2], total: "4", position: "0", next_page_token: "3" });
    expect(first.all_columns).toHaveLength(4);
    const second = await query({ page_size: 3, page_token: first.next_page_token });
    expect(second).toMatchObject({ numbers: [3], position: "3", previous_page_token: "0" });
    expect(second.next_page_token).toBeUndefined();
    expect((await query({ page_size: 3, from_end: true })).numbers).toEqual([1, 2, 3]);
  });

  it("has columns by either name, with texts and gaps", async () => {
    const [lr, model] = (await query({ columns: ["lr", "param:model"] })).columns ?? [];
    expect(lr).toEqual({ name: "lr", numbers: [0.1, 0.01, 0.001, 0.5] });
    expect(model).toEqual({ name: "param:model", missing: [1, 3], texts: ["b", "a"], indexes: [0, 0, 1, 0] });
    expect((await query({})).columns?.map(({ name }) => name)).toEqual(["number", "state", "why", "value", "time", "param:lr", "param:model"]);
  });

  it("has the memory of the GPUs that are asked for, in their order", async () => {
    const fit = await source.call("AnalysisService/GetMemoryFit", { study: "a", capacities: [24, 8] });
    expect(fit.gpus).toEqual([{ capacity_bytes: "24" }, { capacity_bytes: "8" }]);
    expect(fit.models?.[0]?.literal_fits).toEqual(["3", "1"]);
    await expect(source.call("AnalysisService/GetMemoryFit", { study: "a", capacities: [16] })).rejects.toMatchObject({ code: "UNIMPLEMENTED" });
  });

  it("keeps the curves of the trials that are asked for", async () => {
    const numbers = async (request: object) => (await source.call("AnalysisService/GetCurves", { study: "a", ...request })).curves?.map(({ number }) => number);
    expect(await numbers({ where: ["lr<0.2"] })).toEqual([0, 2]);
    expect(await numbers({ numbers: [3] })).toEqual([3]);
  });
});
