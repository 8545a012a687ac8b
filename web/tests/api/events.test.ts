import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connection, reconnects } from "../../src/api/call";
import { follow, type Listener } from "../../src/api/events";

class FakeStream {
  static readonly CLOSED = 2;
  static opened: FakeStream[] = [];
  readyState = 0;
  onerror: (() => void) | null = null;
  private readonly listeners = new Map<string, (event: { data: string; lastEventId: string }) => void>();

  constructor(readonly address: string) {
    FakeStream.opened.push(this);
  }

  addEventListener(kind: string, listener: (event: { data: string; lastEventId: string }) => void): void {
    this.listeners.set(kind, listener);
  }

  send(kind: string, data: unknown, lastEventId = ""): void {
    this.listeners.get(kind)?.({ data: JSON.stringify(data), lastEventId });
  }

  fail(readyState: number): void {
    this.readyState = readyState;
    this.onerror?.();
  }

  close(): void {
    this.readyState = FakeStream.CLOSED;
  }
}

const polled = (events: unknown[] = [], after = "7") => new Response(JSON.stringify({ events, after }));
const CONNECTING = 0;

describe("a stream of changes", () => {
  const fetched = vi.fn<(address: string) => Promise<Response>>();
  let stop = () => {};
  const start = async (listener: Listener = {}) => {
    stop = follow("toy", listener, "3");
    await vi.advanceTimersByTimeAsync(0);
    const [stream] = FakeStream.opened;
    if (stream === undefined) throw new Error("no stream was opened");
    return stream;
  };

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("EventSource", FakeStream);
    vi.stubGlobal("fetch", fetched);
    FakeStream.opened = [];
    connection.value = "up";
  });

  afterEach(() => {
    stop();
    fetched.mockReset();
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it("tells that the server is gone, and that it is back", async () => {
    const before = reconnects.value;
    const stream = await start();
    fetched.mockRejectedValue(new TypeError("Failed to fetch"));
    stream.fail(CONNECTING);
    await vi.advanceTimersByTimeAsync(10);
    expect(connection.value).toBe("lost");
    fetched.mockImplementation(async () => polled());
    await vi.advanceTimersByTimeAsync(5000);
    expect(connection.value).toBe("up");
    expect(reconnects.value).toBe(before + 1);
    expect(FakeStream.opened).toHaveLength(2);
  });

  it("is opened again where the server answers, after what was heard last", async () => {
    const stream = await start();
    stream.send("change", { kind: "finished" }, "6");
    fetched.mockImplementation(async () => polled());
    stream.fail(CONNECTING);
    await vi.advanceTimersByTimeAsync(1100);
    expect(fetched).toHaveBeenCalledTimes(1);
    expect(fetched.mock.calls[0]?.[0]).toContain("after=6");
    expect(FakeStream.opened[1]?.address).toContain("after=7");
    expect(connection.value).toBe("up");
  });

  it("ends with its study, and says so", async () => {
    const gone = vi.fn();
    const stream = await start({ gone });
    fetched.mockImplementation(async () => new Response(JSON.stringify({ code: "NOT_FOUND", message: "expected one of b" }), { status: 404 }));
    stream.fail(CONNECTING);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(gone).toHaveBeenCalledTimes(1);
    expect(gone.mock.calls[0]?.[0]).toMatchObject({ code: "NOT_FOUND", message: "expected one of b" });
    expect(fetched).toHaveBeenCalledTimes(1);
  });

  it("is polled where the server refuses it", async () => {
    const heard: unknown[] = [];
    const stream = await start({ change: (change) => heard.push(change.kind) });
    fetched.mockImplementation(async () => polled([{ id: "7", event: "change", data: { kind: "finished" } }]));
    stream.fail(FakeStream.CLOSED);
    await vi.advanceTimersByTimeAsync(4100);
    expect(heard).toEqual(["finished", "finished", "finished"]);
    expect(FakeStream.opened).toHaveLength(1);
  });

  it("starts at the study's present where changes were missed", async () => {
    const reset = vi.fn();
    const stream = await start({ reset });
    stream.send("reset", { sequence: "90" });
    expect(reset).toHaveBeenCalledTimes(1);
    fetched.mockImplementation(async () => new Response(JSON.stringify({ events: [] })));
    stream.fail(CONNECTING);
    await vi.advanceTimersByTimeAsync(1100);
    expect(FakeStream.opened[1]?.address).not.toContain("after");
  });
});
