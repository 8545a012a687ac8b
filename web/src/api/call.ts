// Calls of the server's RPCs as JSON (web/API.md).
import { signal } from "@preact/signals";
import type { Methods } from "./messages";

export type Method = keyof Methods;
export type Request<M extends Method> = Methods[M][0];
export type Answer<M extends Method> = Methods[M][1];

// An answer that is an error. `code` is gRPC's name; `message` is for people.
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

// What answers calls: the server, or the data of an exported page.
export interface Source {
  call<M extends Method>(method: M, request: Request<M>, abort?: AbortSignal): Promise<Answer<M>>;
  // Whether calls that change something and streams of changes exist.
  readonly live: boolean;
  // When the data was read, in milliseconds since 1970; undefined: it is read now, or it is unknown.
  readonly recorded_ms?: number;
}

// "lost": the server did not answer the last call; "refused": it wants a token.
export type Connection = "up" | "lost" | "refused";
export const connection = signal<Connection>("up");
// Grows each time the server is back after it was lost: what was read before may be outdated.
export const reconnects = signal(0);

const RETRY_MS = 1000;

export async function readError(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { code, message } = JSON.parse(text) as { code?: string; message?: string };
    if (code !== undefined) return new ApiError(code, message ?? code);
  } catch {
    // A proxy between answers with a page of its own.
  }
  return new ApiError("UNKNOWN", `The server answered with status ${response.status}.`);
}

let waiting = false;

// Asks until the server answers again.
export function lostConnection(): void {
  if (connection.value === "up") connection.value = "lost";
  if (waiting) return;
  waiting = true;
  const ask = async () => {
    try {
      const response = await fetch("/api/health", { cache: "no-store" });
      if (response.ok) {
        waiting = false;
        connection.value = "up";
        reconnects.value += 1;
        return;
      }
    } catch {
      // It is still gone.
    }
    setTimeout(ask, RETRY_MS);
  };
  setTimeout(ask, RETRY_MS);
}

export const server: Source = {
  live: true,
  async call(method, request, abort) {
    let response: Response;
    try {
      response = await fetch(`/api/${method}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(request),
        signal: abort ?? null,
      });
    } catch (error) {
      if (abort?.aborted) throw error;
      lostConnection();
      throw new ApiError("UNAVAILABLE", "The server does not answer.");
    }
    if (!response.ok) {
      const error = await readError(response);
      if (error.code === "UNAUTHENTICATED") connection.value = "refused";
      if (error.code === "UNAVAILABLE") lostConnection();
      throw error;
    }
    return response.json();
  },
};

let source: Source = server;

// For so long an answer that was asked for ahead is taken.
const AHEAD_MS = 5000;
const ahead = new Map<string, Promise<unknown>>();

function keyOf(method: Method, request: unknown): string {
  return `${method} ${JSON.stringify(request)}`;
}

// Asks for what the page will want in a moment, while its code is read: the next such call gets this answer.
export function askAhead<M extends Method>(method: M, request: Request<M>): void {
  const key = keyOf(method, request);
  const answer = source.call(method, request);
  answer.catch(() => {}); // whoever takes it sees the error
  ahead.set(key, answer);
  setTimeout(() => ahead.delete(key), AHEAD_MS);
}

// An exported page has its data with it; called once, before anything is read.
export function useSource(other: Source): void {
  source = other;
}

export function isLive(): boolean {
  return source.live;
}

export function recordedAt(): number | undefined {
  return source.recorded_ms;
}

export function call<M extends Method>(
  method: M,
  request: Request<M>,
  abort?: AbortSignal,
): Promise<Answer<M>> {
  const key = keyOf(method, request);
  const asked = ahead.get(key) as Promise<Answer<M>> | undefined;
  ahead.delete(key);
  return asked ?? source.call(method, request, abort);
}
