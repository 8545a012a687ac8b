import { describe, expect, it } from "vitest";
import { outsideText } from "../../../src/pages/study/edit_ranges";

describe("trials outside of edited ranges", () => {
  it("stay, or are cancelled where they only wait", () => {
    expect(outsideText(0, 0)).toBe("No trial falls outside of the new space.");
    expect(outsideText(1, 0)).toBe("1 trial would lie outside; it stays, and teaches the sampler nothing more.");
    expect(outsideText(1, 1)).toBe("1 queued trial would be cancelled.");
    expect(outsideText(5, 2)).toBe("3 trials would lie outside; they stay, and teach the sampler nothing more. 2 queued trials would be cancelled.");
  });
});
