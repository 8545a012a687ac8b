import { describe, expect, it } from "vitest";
import { ApiError } from "../../../src/api/call";
import type { QueryTrialsRequest, Study } from "../../../src/api/messages";
import { cell, readTable, tableOf } from "../../../src/pages/analysis/table";

const study: Study = {
  name: "a",
  objectives: [{ metric: "loss", direction: "DIRECTION_MINIMIZE" }],
  space: {
    parameters: [
      { name: "lr", domain: { float_domain: { low: 1, high: 2, log: true } } },
      { name: "batch", domain: { categorical_domain: { choices: [{ int_value: "8" }, { int_value: "16" }] } } },
      { name: "flag", domain: { categorical_domain: { choices: [{ bool_value: true }, { bool_value: false }] } } },
    ],
  },
};

describe("the table of trials", () => {
  it("turns pages from the newest into columns from the oldest", () => {
    const table = tableOf(study, [
      {
        total: "9",
        matching: "3",
        numbers: [5, 4],
        columns: [
          { name: "state", texts: ["PRUNED", "COMPLETED"], indexes: [0, 1] },
          { name: "why", texts: ["OUT_OF_MEMORY"], indexes: [0, 0], missing: [1] },
          { name: "violation", numbers: [0, 2] },
          { name: "param:lr", numbers: [1.5, 0], missing: [1] },
          { name: "param:batch", numbers: [16, 32] },
          { name: "metric:loss", numbers: ["NaN", 3] },
        ],
      },
      { numbers: [1], columns: [{ name: "state", texts: ["RUNNING"], indexes: [0] }, { name: "param:batch", numbers: [8] }, { name: "param:flag", texts: ["false"], indexes: [0] }] },
    ]);
    expect([...table.numbers]).toEqual([1, 4, 5]);
    expect(table.letters).toEqual(["R", "I", "O"]);
    const [lr, batch, flag] = table.parameters;
    expect([...(lr?.values ?? [])]).toEqual([Number.NaN, Number.NaN, 1.5]);
    expect(lr?.log).toBe(true);
    // 32 was taken out of the space by an edit, and its trials are still there.
    expect(batch?.choices).toEqual(["8", "16", "32"]);
    expect([...(batch?.values ?? [])]).toEqual([0, 2, 1]);
    expect(flag && cell(flag, 0)).toBe("false");
    expect(flag && cell(flag, 1)).toBeUndefined();
    expect([...(table.objectives[0]?.values ?? [])]).toEqual([Number.NaN, 3, Number.NaN]);
  });

  it("reads smaller pages where the server allows no larger ones", async () => {
    const asked: QueryTrialsRequest[] = [];
    const table = await readTable(study, ["lr>1"], (request) => {
      asked.push({ ...request });
      if ((request.page_size ?? 0) > 1000) return Promise.reject(new ApiError("INVALID_ARGUMENT", "page_size: expected 0 to 1000, got 20000"));
      return Promise.resolve(request.page_token ? { numbers: [0], next_page_token: "" } : { numbers: [1], total: "2", next_page_token: "next" });
    });
    expect(asked.map(({ page_size, page_token }) => [page_size, page_token])).toEqual([[20_000, ""], [1000, ""], [1000, "next"]]);
    expect(asked[0]?.where).toEqual(["lr>1"]);
    expect([...table.numbers]).toEqual([0, 1]);
  });

  it("fails with what the server says", async () => {
    await expect(readTable(study, [], () => Promise.reject(new ApiError("NOT_FOUND", "no study")))).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});
