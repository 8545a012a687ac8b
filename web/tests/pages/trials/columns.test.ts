import { describe, expect, it } from "vitest";
import type { ColumnInfo } from "../../../src/api/messages";
import { cellsOf, cellText, defaultColumns, keyOf, lettersOf, lookOf } from "../../../src/pages/trials/columns";

const infos: ColumnInfo[] = [
  { name: "state", kind: "COLUMN_KIND_FIELD" },
  { name: "peak_bytes", kind: "COLUMN_KIND_FIELD", numeric: true },
  { name: "lr", kind: "COLUMN_KIND_PARAMETER", numeric: true },
  { name: "param:time", kind: "COLUMN_KIND_PARAMETER" },
  { name: "loss", kind: "COLUMN_KIND_METRIC", numeric: true },
];

describe("looks", () => {
  it("are the same for both names of a parameter", () => {
    expect(keyOf(lookOf("lr", infos))).toBe("param:lr");
    expect(keyOf(lookOf("param:lr", infos))).toBe("param:lr");
    expect(keyOf(lookOf("loss", infos))).toBe("metric:loss");
  });

  it("tell a field from a parameter of its name", () => {
    expect(lookOf("time", infos).format).toBe("duration");
    expect(lookOf("param:time", infos)).toMatchObject({ group: "parameter", label: "time", format: "value" });
    expect(keyOf(lookOf("param:time", infos))).toBe("param:time");
  });

  it("name the objective of the value", () => {
    expect(lookOf("value", infos, { objectives: [{ metric: "loss" }] }).label).toBe("value (loss)");
  });

  it("are by default those of all objectives and parameters", () => {
    const study = { objectives: [{ metric: "loss" }, { metric: "ms" }], space: { parameters: [{ name: "lr" }] } };
    expect(defaultColumns(study, [])).toEqual(["state", "value", "metric:ms", "time", "param:lr"]);
  });

  it("have the messages of failed trials", () => {
    expect(defaultColumns({}, ["lr>1", "state=failed"])).toEqual(["state", "message", "value", "time"]);
    expect(defaultColumns({}, ["state=completed"])).toEqual(["state", "value", "time"]);
    // A parameter of that name hides them.
    const hiding = { space: { parameters: [{ name: "message" }] } };
    expect(defaultColumns(hiding, ["state=failed"])).toEqual(["state", "value", "time", "param:message"]);
  });
});

describe("cells", () => {
  it("are read with rows that are missing", () => {
    const numbers = cellsOf({ numbers: [1, 0, "Infinity"], missing: [1] });
    expect([0, 1, 2, 3].map(numbers)).toEqual([1, undefined, Infinity, undefined]);
    const texts = cellsOf({ texts: ["a", "b"], indexes: [1, 0, 0], missing: [2] });
    expect([0, 1, 2].map(texts)).toEqual(["b", "a", undefined]);
    expect(cellsOf(undefined)(0)).toBeUndefined();
  });

  it("are shown by their column", () => {
    expect(cellText(lookOf("peak_bytes", infos), 2 ** 30)).toBe("1.00 GiB");
    expect(cellText(lookOf("time", infos), 200)).toBe("3 min 20 s");
    expect(cellText(lookOf("time", infos), 0)).toBe("unknown");
    expect(cellText(lookOf("lr", infos), 20241)).toBe("20241");
    expect(cellText(lookOf("loss", infos), 20241)).toBe("20,241");
    expect(cellText(lookOf("why", infos), "WORKER_LOST")).toBe("worker lost");
    expect(cellText(lookOf("why", infos), "PRUNER")).toBe("by the pruner");
    expect(cellText(lookOf("lr", infos), undefined)).toBe("");
  });

  it("tell states of one name apart", () => {
    const letters = lettersOf({
      columns: [
        { name: "state", texts: ["COMPLETED", "PRUNED", "FAILED"], indexes: [0, 0, 1, 1, 1, 1, 2] },
        { name: "why", texts: ["PRUNER", "OUT_OF_MEMORY", "PREDICTED_OUT_OF_MEMORY", "HOST_OUT_OF_MEMORY", "DIVERGED"], indexes: [0, 0, 0, 1, 2, 3, 4], missing: [0, 1] },
        { name: "violation", numbers: [0, 2, 0, 0, 0, 0, 0] },
      ],
    });
    expect([0, 1, 2, 3, 4, 5, 6].map(letters).join("")).toBe("CIPOEOF");
  });
});
