import { afterEach, describe, expect, it, vi } from "vitest";
import { lookOf } from "../../../src/pages/trials/columns";
import { csvOf, fileName, jsonOf, readAll } from "../../../src/pages/trials/export";

const pages = [
  {
    numbers: [3, 7],
    columns: [
      { name: "value", numbers: [0.1234567890123, 0], missing: [1] },
      { name: "param:opt", texts: ['say "a", b', "true"], indexes: [0, 1] },
      { name: "metric:loss", numbers: [1, "Infinity" as const] },
    ],
  },
  { numbers: [9], columns: [{ name: "value", numbers: [2] }] },
];
const looks = ["number", "value", "param:opt", "metric:loss"].map((name) => lookOf(name, []));

describe("files", () => {
  it("CSV has exact numbers and quoted texts", () => {
    expect(csvOf(pages, looks)).toBe('number,value,param:opt,metric:loss\r\n3,0.1234567890123,"say ""a"", b",1\r\n7,,true,Infinity\r\n9,2,,\r\n');
  });

  it("JSON has choices of their own type, and leaves out what is missing", () => {
    const parameters = [{ name: "opt", domain: { categorical_domain: { choices: [{ bool_value: true }, { string_value: "x" }] } } }];
    expect(JSON.parse(jsonOf(pages, looks, parameters))).toEqual([
      { number: 3, value: 0.1234567890123, params: { opt: 'say "a", b' }, metrics: { loss: 1 } },
      { number: 7, params: { opt: true }, metrics: { loss: "Infinity" } },
      { number: 9, value: 2, params: {}, metrics: {} },
    ]);
  });

  it("CSV has no formula of a text, and leaves numbers as they are", () => {
    const texts = ["=HYPERLINK(1)", "-rf", "+1e3", "@x", "\t=1", "a=b", "-0.5"];
    const column = { name: "param:opt", texts, indexes: texts.map((_, index) => index) };
    const losses = { name: "metric:loss", numbers: texts.map((_, index) => -index) };
    const lines = csvOf([{ numbers: texts.map((_, index) => index), columns: [column, losses] }], [lookOf("param:opt", []), lookOf("metric:loss", [])]);
    expect(lines.split("\r\n").slice(1, -1).map((line) => line.split(",")[1])).toEqual(["'=HYPERLINK(1)", "'-rf", "+1e3", "'@x", "'\t=1", "a=b", "-0.5"]);
    expect(lines).toContain("3,'@x,-3");
  });

  it("JSON has parameters of any name", () => {
    const column = { name: "param:__proto__", numbers: [0.5] };
    expect(jsonOf([{ numbers: [1], columns: [column] }], [lookOf("param:__proto__", [])], [])).toContain('"params":{"__proto__":0.5}');
  });

  it("have a name that every file system takes", () => {
    expect(fileName("a/b: <c>", "csv")).toBe("a_b_c_-trials.csv");
    expect(fileName("../..", "json")).toBe(".._..-trials.json");
    expect(fileName("é", "csv")).toBe("_-trials.csv");
  });
});

describe("readAll", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("reads from the first page to the last, wherever the table is", async () => {
    const asked: Record<string, unknown>[] = [];
    vi.stubGlobal("fetch", async (_address: string, { body }: { body: string }) => {
      asked.push(JSON.parse(body) as Record<string, unknown>);
      const answer = asked.length === 1 ? { numbers: [1, 2], matching: "3", next_page_token: "t" } : { numbers: [3], matching: "3" };
      return new Response(JSON.stringify(answer));
    });
    const heard: number[][] = [];
    const read = await readAll({ study: "s", sort: "lr", from_end: true, page_token: "old" }, (now, of) => heard.push([now, of]), new AbortController().signal);
    expect(read.flatMap(({ numbers }) => numbers)).toEqual([1, 2, 3]);
    expect(heard).toEqual([[2, 3], [3, 3]]);
    expect(asked[0]).toEqual({ study: "s", sort: "lr", page_size: 5000 });
    expect(asked[1]).toEqual({ study: "s", sort: "lr", page_size: 5000, page_token: "t" });
  });
});
