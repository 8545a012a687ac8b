import { afterEach, expect, it, vi } from "vitest";
import { reconnects } from "../../src/api/call";
import { followSession, session } from "../../src/api/session";

afterEach(() => vi.unstubAllGlobals());

it("is read again when the server is back", async () => {
  vi.useFakeTimers();
  const fetched = vi.fn<(address: string) => Promise<Response>>(() => Promise.reject(new TypeError("Failed to fetch")));
  vi.stubGlobal("fetch", fetched);
  followSession();
  await vi.advanceTimersByTimeAsync(10);
  expect(session.value).toBeUndefined();
  const before = reconnects.value;
  fetched.mockImplementation(async () => new Response(JSON.stringify({ name: "ann", role: "write", tls: true, version: "1" })));
  await vi.advanceTimersByTimeAsync(2000);
  expect(reconnects.value).toBe(before + 1);
  expect(session.value?.role).toBe("write");
  vi.useRealTimers();
});
