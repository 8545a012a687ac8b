// Changes as they happen: server-sent events, or polling where the browser or the server has no
// stream left.
import { connection, isLive, lostConnection, readError, type ApiError } from "./call";
import type { Study, TrialChange } from "./messages";

export interface Listener {
  // The study as it is now.
  snapshot?: (study: Study) => void;
  change?: (change: TrialChange) => void;
  // Too much happened to be told apart: read everything again.
  reset?: () => void;
  // The study is not there any more: nothing follows.
  gone?: (error: ApiError) => void;
  // Names of studies that changed; only of a stream of all studies.
  studies?: (names: string[]) => void;
}

const POLL_MS = 2000;
const RETRY_MS = 1000;
// A browser has six connections to an origin in all of its tabs (HTTP/1.1), and calls need some.
const STREAMS_OF_A_BROWSER = 3;

interface Polled {
  events: { id?: string; event: string; data: unknown }[];
  after?: string;
}

// Follows one study, or all of them with `study` undefined, until the returned function is called.
// `after`: the sequence that is known already.
export function follow(study: string | undefined, listener: Listener, after?: string): () => void {
  if (!isLive()) return () => {};
  const follower = new Follower(study, listener, after);
  follower.start();
  return () => follower.stop();
}

class Follower {
  private stopped = false;
  private stream: EventSource | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private releaseSlot: (() => void) | undefined;

  constructor(
    private readonly study: string | undefined,
    private readonly listener: Listener,
    private after: string | undefined,
  ) {}

  start(): void {
    document.addEventListener("visibilitychange", this.onVisibility);
    void this.open();
  }

  stop(): void {
    this.stopped = true;
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.pause();
  }

  // A tab that nobody sees needs no stream; it reads what it missed when it is seen again.
  private readonly onVisibility = (): void => {
    if (document.hidden) this.pause();
    else if (this.stream === undefined && this.timer === undefined) void this.open();
  };

  private pause(): void {
    this.stream?.close();
    this.stream = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.releaseSlot?.();
    this.releaseSlot = undefined;
  }

  private later(action: () => void, delay: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (!this.stopped && !document.hidden) action();
    }, delay);
  }

  private address(extra: Record<string, string> = {}): string {
    const query = new URLSearchParams(extra);
    if (this.study !== undefined) query.set("study", this.study);
    if (this.after !== undefined) query.set("after", this.after);
    return `/api/events?${query}`;
  }

  private async open(): Promise<void> {
    if (typeof EventSource === "undefined" || !(await this.takeSlot())) {
      void this.poll();
      return;
    }
    if (this.stopped || document.hidden) {
      this.pause();
      return;
    }
    const stream = new EventSource(this.address());
    this.stream = stream;
    for (const kind of ["snapshot", "change", "reset", "bookmark", "studies"]) {
      stream.addEventListener(kind, (event) => {
        this.receive(kind, JSON.parse(event.data), event.lastEventId);
      });
    }
    stream.onerror = () => {
      if (this.stopped) return;
      const refused = stream.readyState === EventSource.CLOSED;
      this.pause();
      // EventSource does not say why: a poll finds out. Where the server answers it and had not
      // refused the stream, a stream is opened again.
      void this.poll(refused ? undefined : () => this.later(() => void this.open(), RETRY_MS));
    };
  }

  // Whether this browser may have one more stream. Where it cannot be known, yes.
  private takeSlot(): Promise<boolean> {
    const locks = navigator.locks as LockManager | null | undefined;
    if (!locks) return Promise.resolve(true);
    const tryLock = (index: number): Promise<boolean> =>
      new Promise((resolve) => {
        void locks.request(`hpo-stream-${index}`, { ifAvailable: true }, (lock) => {
          if (lock === null) {
            resolve(false);
            return;
          }
          return new Promise<void>((release) => {
            this.releaseSlot = release;
            resolve(true);
          });
        });
      });
    const tryFrom = async (index: number): Promise<boolean> => {
      if (index === STREAMS_OF_A_BROWSER) return false;
      return (await tryLock(index)) || tryFrom(index + 1);
    };
    return tryFrom(0);
  }

  // `answered`: what follows an answer instead of the next poll.
  private async poll(answered?: () => void): Promise<void> {
    if (this.stopped) return;
    try {
      const response = await fetch(this.address({ poll: "1" }), { cache: "no-store" });
      if (response.ok) {
        const polled = (await response.json()) as Polled;
        for (const { event, data, id } of polled.events) this.receive(event, data, id ?? "");
        if (polled.after !== undefined) this.after = polled.after;
        if (answered !== undefined && !this.stopped) return answered();
      } else {
        const error = await readError(response);
        if (error.code === "UNAUTHENTICATED") connection.value = "refused";
        if (error.code === "NOT_FOUND") this.listener.gone?.(error);
        if (error.code === "NOT_FOUND" || error.code === "UNAUTHENTICATED") return;
        if (error.code === "UNAVAILABLE") lostConnection();
      }
    } catch {
      lostConnection();
    }
    this.later(() => void this.poll(answered), POLL_MS);
  }

  private receive(kind: string, data: unknown, id: string): void {
    if (this.stopped) return;
    if (id !== "") this.after = id;
    switch (kind) {
      case "snapshot":
        this.listener.snapshot?.(data as Study);
        break;
      case "change":
        this.listener.change?.(data as TrialChange);
        break;
      case "reset":
        this.after = undefined;
        this.listener.reset?.();
        break;
      case "studies":
        this.listener.studies?.((data as { changed?: string[] }).changed ?? []);
        break;
    }
  }
}
