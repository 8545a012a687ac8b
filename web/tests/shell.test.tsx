import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connection } from "../src/api/call";
import { session } from "../src/api/session";
import { Shell } from "../src/shell";

let place: HTMLElement;
const fetched = vi.fn<(address: string, options?: RequestInit) => Promise<Response>>();
const submitted = vi.fn();

beforeEach(() => {
  vi.stubGlobal("fetch", fetched);
  place = document.createElement("div");
  document.body.append(place);
  connection.value = "refused";
  act(() => render(<Shell>the studies</Shell>, place));
  vi.spyOn(HTMLFormElement.prototype, "submit").mockImplementation(submitted);
});

afterEach(() => {
  act(() => render(null, place));
  place.remove();
  connection.value = "up";
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  fetched.mockReset();
  submitted.mockReset();
});

async function enter(token: string): Promise<string> {
  const field = place.querySelector("input");
  const form = place.querySelector("form");
  if (field === null || form === null) throw new Error("there is no form for a token");
  field.value = token;
  await act(async () => {
    form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    await new Promise((done) => setTimeout(done, 5));
  });
  return place.querySelector("[role=alert]")?.textContent ?? "";
}

describe("the form for a token", () => {
  it("takes one that the server takes", async () => {
    fetched.mockImplementation(async () => new Response("{}"));
    expect(await enter("  hpo1.a.b@h:1 ")).toBe("");
    expect(fetched.mock.calls[0]?.[1]?.headers).toEqual({ Authorization: "Bearer hpo1.a.b@h:1" });
    expect(submitted).toHaveBeenCalledTimes(1);
  });

  it("says why the server refuses one", async () => {
    fetched.mockImplementation(async () => new Response(JSON.stringify({ code: "UNAUTHENTICATED", message: "the token has expired" }), { status: 401 }));
    expect(await enter("hpo1.a.b@h:1")).toBe("the token has expired");
    expect(await enter("two words")).toContain("no token");
    fetched.mockImplementation(() => Promise.reject(new TypeError("Failed to fetch")));
    expect(await enter("hpo1.a.b@h:1")).toBe("The server does not answer.");
    expect(submitted).not.toHaveBeenCalled();
    expect(place.textContent).not.toContain("the studies");
  });
});

it("leads to the form after logging out, unless the server does not answer", async () => {
  connection.value = "up";
  session.value = { name: "ann", role: "read", tls: true, version: "1" };
  fetched.mockImplementation(() => Promise.reject(new TypeError("Failed to fetch")));
  const logOut = async () => {
    await act(async () => {
      [...place.querySelectorAll("button")].find(({ textContent }) => textContent === "Log out")?.click();
      await new Promise((done) => setTimeout(done, 5));
    });
  };
  await act(async () => {});
  await logOut();
  expect(connection.value).toBe("lost");
  expect(session.value).toBeDefined();
  fetched.mockImplementation(async () => new Response(null, { status: 204 }));
  await logOut();
  expect(connection.value).toBe("refused");
  expect(session.value).toBeUndefined();
});
