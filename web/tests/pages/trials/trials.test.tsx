import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useSource, type Answer, type Method, type Request } from "../../../src/api/call";
import type { ColumnInfo, QueryTrialsRequest, QueryTrialsResponse } from "../../../src/api/messages";
import { Trials } from "../../../src/pages/trials/trials";
import { setQuery } from "../../../src/router";
import { StudyProvider, type LiveStudy } from "../../../src/state/study";

const MESSAGE = "the program exited with status 1; its last output: no space left on device";
const state: ColumnInfo = { name: "state", kind: "COLUMN_KIND_FIELD" };
const message: ColumnInfo = { name: "message", kind: "COLUMN_KIND_FIELD" };

let place: HTMLElement;
let asked: QueryTrialsRequest[];

function answer(request: QueryTrialsRequest): QueryTrialsResponse {
  asked.push(request);
  const texts: Record<string, string> = { state: "FAILED", why: "INTERNAL", message: MESSAGE };
  const columns = (request.columns ?? []).map((name) => (texts[name] === undefined ? { name, numbers: [0], missing: [0] } : { name, texts: [texts[name] ?? ""], indexes: [0] }));
  return { total: "1", matching: "1", numbers: [7], columns, all_columns: [state, message] };
}

beforeEach(() => {
  place = document.createElement("main");
  document.body.append(place);
  asked = [];
  useSource({
    live: true,
    call<M extends Method>(_method: M, request: Request<M>): Promise<Answer<M>> {
      return Promise.resolve(answer(request as QueryTrialsRequest) as Answer<M>);
    },
  });
});

afterEach(() => {
  act(() => render(null, place));
  place.remove();
  setQuery({ where: [], column: [] });
});

// After what `action` causes, and what that causes: each round runs the effects of the one before.
async function settled(action: () => void): Promise<void> {
  act(action);
  for (let round = 0; round < 8; round += 1) await act(async () => new Promise((done) => setTimeout(done, 2)));
}

async function show(where: string[]): Promise<string[]> {
  setQuery({ where });
  const study = { name: "s", objectives: [{ metric: "macro_f1" }] };
  const live: LiveStudy = { name: "s", study: signal(study), error: signal(undefined), version: signal(0), onChange: () => () => {}, update: () => {} };
  await settled(() =>
    render(
      <StudyProvider value={live}>
        <Trials words={[]} />
      </StudyProvider>,
      place,
    ),
  );
  return [...place.querySelectorAll("thead th")].map((heading) => (heading.textContent ?? "").trim());
}

describe("the table of trials", () => {
  it("shows the messages of failed trials, the whole text as a tooltip", async () => {
    expect(await show(["state=failed"])).toContain("message");
    const cell = place.querySelector("td.said .clip");
    expect(cell?.textContent).toBe(MESSAGE);
    expect(cell?.getAttribute("title")).toBe(MESSAGE);
  });

  it("offers messages in any table, and shows them there by choice alone", async () => {
    expect(await show([])).not.toContain("message");
    const box = [...place.querySelectorAll(".chooser label")].find((label) => label.textContent?.trim() === "message")?.querySelector("input");
    await settled(() => box?.click());
    expect(asked.at(-1)?.columns).toContain("message");
    expect(place.querySelector("td.said")).not.toBeNull();
  });
});
