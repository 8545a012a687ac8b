import { describe, expect, it } from "vitest";
import { errorPlace, LAST, nextSort, positionText, readPicked, readState, sizeWord, sortedHow, tableRequest, withPicked, withQuick } from "../../../src/pages/trials/query";

describe("the address of the table", () => {
  it("is read with what it leaves out", () => {
    expect(readState(new URLSearchParams(""))).toEqual({ where: [], sort: "", columns: [], size: 100, page: "", picked: [] });
    const state = readState(new URLSearchParams("where=lr>1&where=state=failed&sort=-value&column=a&column=b&size=500&page=abc&pick=3,17,x,3"));
    expect(state).toEqual({ where: ["lr>1", "state=failed"], sort: "-value", columns: ["a", "b"], size: 500, page: "abc", picked: [3, 17] });
  });

  it("takes only sizes that are offered", () => {
    expect(readState(new URLSearchParams("size=99999999")).size).toBe(100);
    expect([sizeWord(100), sizeWord(50)]).toEqual(["", "50"]);
  });

  it("becomes a request that can tell the states apart", () => {
    const state = readState(new URLSearchParams("sort=lr"));
    expect(tableRequest("s", state, ["value", "state"])).toEqual({ study: "s", where: [], sort: "lr", columns: ["value", "state", "why", "violation"], page_size: 100 });
    expect(tableRequest("s", { ...state, page: LAST }, []).from_end).toBe(true);
    expect(tableRequest("s", { ...state, page: "token" }, []).page_token).toBe("token");
  });
});

describe("sorting", () => {
  it("turns round at the second click", () => {
    expect(nextSort("", "lr", false)).toBe("lr");
    expect(nextSort("lr", "lr", false)).toBe("-lr");
    expect(nextSort("-lr", "lr", false)).toBe("lr");
    expect(nextSort("lr", "value", true)).toBe("-value");
    expect(nextSort("-value", "value", true)).toBe("value");
  });

  it("is said of each column", () => {
    expect(sortedHow("", "number")).toBe("ascending");
    expect(sortedHow("-lr", "lr")).toBe("descending");
    expect(sortedHow("lr", "number")).toBeUndefined();
  });
});

describe("conditions", () => {
  it("have one state at a time", () => {
    expect(withQuick(["state=failed", "lr>1"], "why=PRUNER")).toEqual(["why=PRUNER", "lr>1"]);
    expect(withQuick(["state=failed", "lr>1"], "")).toEqual(["lr>1"]);
  });

  it("have their errors at the input", () => {
    expect(errorPlace("where: lr: expected a number, got 'x'")).toBe("where");
    expect(errorPlace("page_token: expected one that QueryTrials gave")).toBe("page");
    expect(errorPlace("columns: expected ...")).toBe("table");
  });
});

describe("the comparison", () => {
  it("takes 20 trials at most", () => {
    const many = Array.from({ length: 30 }, (_, index) => index);
    expect(readPicked(many.join(","))).toHaveLength(20);
    expect(withPicked(many.slice(0, 20), 25, true)).toHaveLength(20);
    expect(withPicked([1, 2], 1, false)).toEqual([2]);
    expect(readPicked("1,-2,3.5,1e3,99999999999999")).toEqual([1]);
  });
});

it("says which rows are shown", () => {
  expect(positionText(100, 100, 61234)).toBe("Rows 101 to 200 of 61,234");
  expect(positionText(0, 0, 0)).toBe("No rows");
});
