import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useSource, type Answer, type Method, type Request, type Source } from "../../../src/api/call";
import { session, type Session } from "../../../src/api/session";
import type { Worker } from "../../../src/api/messages";
import { Fleet } from "../../../src/pages/fleet/fleet";

const HOSTILE = "<img src=x onerror=alert(1)>";

const workers: Worker[] = [
  { name: "slurm-17_3", alive: true, trial: "4", study: "a/b", device: "RTX 3060", capacity_bytes: String(12 * 2 ** 30), reserved_bytes: String(6 * 2 ** 30) },
  { name: HOSTILE, alive: true, idle_because: HOSTILE, device: "H200" },
  { name: "old", drained: true },
];

class Recorded implements Source {
  readonly live = true;
  readonly asked: [Method, unknown][] = [];
  call<M extends Method>(method: M, request: Request<M>): Promise<Answer<M>> {
    this.asked.push([method, request]);
    const answer = method === "FleetService/ListWorkers" ? { workers } : { names: ["slurm-17_3"] };
    return Promise.resolve(answer as Answer<M>);
  }
}

function logIn(role: Session["role"]): void {
  session.value = { name: "test", role, tls: false, version: "0" };
}

let place: HTMLElement;
let source: Recorded;

beforeEach(() => {
  source = new Recorded();
  useSource(source);
  place = document.createElement("main");
  document.body.append(place);
  // What follows changes has no stream here.
  globalThis.fetch = () => Promise.resolve(new Response('{"events":[]}'));
});

afterEach(() => {
  act(() => render(null, place));
  place.remove();
});

async function show(): Promise<void> {
  await act(async () => {
    render(<Fleet words={[]} />, place);
    await new Promise((done) => setTimeout(done, 20));
  });
}

function button(label: string): HTMLButtonElement {
  const found = [...place.querySelectorAll("button")].find((one) => (one.getAttribute("aria-label") ?? one.textContent) === label);
  if (found === undefined) throw new Error(`no button ${label}`);
  return found;
}

describe("the fleet's page", () => {
  it("shows workers, and what they say as text", async () => {
    logIn("write");
    await show();
    expect(place.textContent).toContain("Slurm job 17, array task 3");
    expect(place.textContent).toContain("6.00 GiB of 12.0 GiB");
    expect(place.textContent).toContain(HOSTILE);
    expect(place.querySelector("img")).toBeNull();
    expect(place.querySelector("a[href='/studies/a%2Fb/trials/4']")).not.toBeNull();
    expect(place.textContent).toContain("1 worker has gone");
  });
  it("lets readers change nothing", async () => {
    logIn("read");
    await show();
    for (const label of ["Drain all…", "Resume all", "Drain slurm-17_3", "Resume old"]) {
      expect(button(label).disabled).toBe(true);
      expect(button(label).title).toContain("role");
    }
  });
  it("resumes a worker", async () => {
    logIn("admin");
    await show();
    await act(async () => {
      button("Resume old").click();
      await new Promise((done) => setTimeout(done, 5));
    });
    expect(source.asked).toContainEqual(["FleetService/ResumeWorkers", { names: ["old"] }]);
  });
});
