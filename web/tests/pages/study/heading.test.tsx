import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useSource, type Answer, type Method, type Request } from "../../../src/api/call";
import type { Study } from "../../../src/api/messages";
import { session } from "../../../src/api/session";
import { StudyHeading } from "../../../src/pages/study/heading";
import { notices } from "../../../src/state/notices";
import { StudyProvider, type LiveStudy } from "../../../src/state/study";

const active = { name: "s", state: "STUDY_STATE_ACTIVE", order: "STUDY_ORDER_RUN", budget: { trials: "10" } } as const;
const finished = { ...active, state: "STUDY_STATE_FINISHED" } as const;
const used = { completed: "9", failed: "1" } as const;
const half = { completed: "4", failed: "1" } as const;

let place: HTMLElement;
let asked: [Method, unknown][];
let after: Study;

beforeEach(() => {
  place = document.createElement("main");
  document.body.append(place);
  asked = [];
  after = active;
  answering(true);
  session.value = { name: "test", role: "write", tls: false, version: "0" };
  notices.value = [];
});

afterEach(() => {
  act(() => render(null, place));
  place.remove();
});

function answering(live: boolean): void {
  useSource({
    live,
    call<M extends Method>(method: M, request: Request<M>): Promise<Answer<M>> {
      asked.push([method, request]);
      return Promise.resolve({ study: after } as Answer<M>);
    },
  });
}

async function show(study: Study): Promise<HTMLButtonElement[]> {
  const live: LiveStudy = { name: "s", study: signal(study), error: signal(undefined), version: signal(0), onChange: () => () => {}, update: () => {} };
  await act(() =>
    render(
      <StudyProvider value={live}>
        <StudyHeading study={study} />
      </StudyProvider>,
      place,
    ),
  );
  return [...place.querySelectorAll("button")];
}

async function words(study: Study): Promise<string[]> {
  return (await show(study)).map((button) => button.textContent ?? "");
}

const others = ["Extend …", "Enqueue …", "Edit ranges …"];

describe("the orders of a study", () => {
  it("begin with a pause of one that runs or waits", async () => {
    expect(await words({ ...active, counts: { running: "2" } })).toEqual(["Pause", "Stop …", ...others]);
    expect(await words(active)).toEqual(["Pause", "Stop …", ...others]);
  });

  it("begin with going on where that was held", async () => {
    expect(await words({ ...active, order: "STUDY_ORDER_PAUSE" })).toEqual(["Resume", "Stop …", ...others]);
    expect(await words({ ...active, order: "STUDY_ORDER_STOP", counts: { running: "1" } })).toEqual(["Resume", ...others]);
    expect(await words({ ...finished, order: "STUDY_ORDER_STOP", counts: half })).toEqual(["Resume", ...others]);
    expect(await words({ ...finished, failure: "4 of 5 trials failed", counts: half })).toEqual(["Resume", ...others]);
  });

  it("begin with extending one that is finished", async () => {
    expect(await words({ ...finished, counts: used })).toEqual(others);
    // Ended by a lack of progress, as only the server knows.
    expect(await words({ ...finished, counts: half })).toEqual(others);
  });

  it("do not resume what has nothing left to run", async () => {
    expect(await words({ ...finished, order: "STUDY_ORDER_STOP", counts: used })).toEqual(others);
    expect(await words({ ...finished, order: "STUDY_ORDER_PAUSE", counts: used })).toEqual(others);
    expect(await words({ ...finished, failure: "all failed", counts: used })).toEqual(others);
    const late = { ...finished, order: "STUDY_ORDER_STOP", counts: half, budget: { trials: "10", wall_clock: "60s" }, wall_clock_used: "61s" } as const;
    expect(await words(late)).toEqual(others);
    const reached = { ...finished, order: "STUDY_ORDER_STOP", counts: half, budget: { trials: "10", target: 0.5 }, best_value: 0.4 } as const;
    expect(await words(reached)).toEqual(others);
    expect(await words({ ...reached, objectives: [{ direction: "DIRECTION_MAXIMIZE" }] })).toEqual(["Resume", ...others]);
  });

  it("resume where a trial waits in the queue, whatever the budget", async () => {
    expect(await words({ ...finished, order: "STUDY_ORDER_STOP", counts: { ...used, queued: "1" } })).toEqual(["Resume", ...others]);
  });

  it("say what came of resuming", async () => {
    const stopped: Study = { ...finished, order: "STUDY_ORDER_STOP", counts: half };
    for (const [answer, text] of [
      [active, "The study goes on."],
      [{ ...finished, waiting_for: "no progress in 20 trials" }, "The study stays finished: no progress in 20 trials."],
    ] as const) {
      after = answer;
      const [resume] = await show(stopped);
      await act(async () => {
        resume?.click();
        await Promise.resolve();
      });
      expect(asked.at(-1)).toEqual(["StudyService/OrderStudy", { name: "s", order: "STUDY_ORDER_RUN", stop_running_trials: false }]);
      expect(notices.value.at(-1)?.text).toBe(text);
    }
  });

  it("are disabled for readers and in a file, and say why", async () => {
    session.value = { name: "test", role: "read", tls: true, version: "0" };
    for (const button of await show(active)) {
      expect(button.disabled).toBe(true);
      expect(button.title).toBe("Your token has the role read, which may not do this; the roles write and admin may.");
    }
    answering(false);
    session.value = undefined;
    act(() => render(null, place));
    for (const button of await show(active)) expect(button.title).toBe("This page is a file: nothing can be changed here.");
  });
});
