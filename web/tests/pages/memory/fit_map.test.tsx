import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GetMemoryFitResponse } from "../../../src/api/messages";
import { FitMap } from "../../../src/pages/memory/fit_map";

const G = 2 ** 30;
const cut = { parameter: "b", description: "b <= 16", misfits_removed: "120", misfits_left: "0", fits_lost: "20" };

let place: HTMLElement;
beforeEach(() => {
  globalThis.ResizeObserver ??= class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
  place = document.createElement("main");
  document.body.append(place);
});
afterEach(() => {
  render(null, place);
  place.remove();
});

function show(data: GetMemoryFitResponse): string {
  const reading = { data, error: undefined, loading: false, reload: () => undefined };
  act(() => render(<FitMap reading={reading} workers={[]} focus={12 * G} policy="plan" />, place));
  return place.textContent ?? "";
}

const models = [{ name: "small", known: true, configurations: "200" }];
const capacity = { capacity_bytes: String(12 * G), usable_bytes: String(11.75 * G) };

describe("the fit map", () => {
  it("says before a cut that none is necessary", () => {
    const text = show({ configurations: "200", models, gpus: [{ ...capacity, literal: { fits: "80", does_not_fit: "120", cut }, planned: { fits: "200" } }] });
    expect(text.indexOf("No cut is necessary")).toBeGreaterThan(0);
    expect(text.indexOf("No cut is necessary")).toBeLessThan(text.indexOf("Cut b to at most 16"));
    expect(text).toContain("gradient accumulation");
    expect(text).not.toMatch(/unknown/i);
  });
  it("has a column and a striped part for what is unknown", () => {
    const counts = { fits: "80", does_not_fit: "111", unknown: "9" };
    const text = show({ configurations: "200", models: [{ known: true, configurations: "200" }], gpus: [{ ...capacity, literal: counts, planned: counts }] });
    expect([...place.querySelectorAll("th")].map((head) => head.textContent)).toContain("Unknown");
    expect(text).toContain("The memory of 9 of 200 configurations is unknown on this GPU: the study would try them.");
    expect(place.querySelector(".fitbar")?.getAttribute("aria-label")).toBe("80 fit, 111 do not fit, 9 are unknown");
    expect(place.querySelectorAll(".fitbar .unknown").length).toBe(2);
    expect(text).not.toContain("micro-batch");
  });
});
