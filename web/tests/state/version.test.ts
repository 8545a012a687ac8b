import { describe, expect, it } from "vitest";
import { concerns } from "../../src/state/version";

describe("changes that concern a trial", () => {
  it("are its own, and those that were missed", () => {
    expect(concerns({ kind: "finished", trial: { number: "4" } }, [3, 4])).toBe(true);
    expect(concerns({ kind: "queued", trial: {} }, [0])).toBe(true);
    expect(concerns({ kind: "finished", trial: { number: "5" } }, [3, 4])).toBe(false);
    expect(concerns({ kind: "bookmark" }, [3])).toBe(false);
    expect(concerns(undefined, [3])).toBe(true);
  });
});
