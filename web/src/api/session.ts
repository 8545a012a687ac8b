// Who uses the page, and what they may do.
import { computed, signal } from "@preact/signals";
import { connection, isLive, lostConnection, readError, reconnects, type ApiError } from "./call";

export interface Session {
  name: string;
  role: "read" | "work" | "write" | "admin";
  tls: boolean;
  version: string;
}

export const session = signal<Session | undefined>(undefined);

// Why controls that change something are disabled; undefined: they are not. The server decides by
// itself.
export const whyReadOnly = computed(() => {
  if (!isLive()) return "This page is a file: nothing can be changed here.";
  const role = session.value?.role ?? "read";
  if (role === "write" || role === "admin") return undefined;
  return `Your token has the role ${role}, which may not do this; the roles write and admin may.`;
});

// Reads it now, and whenever the server is back after it was lost.
export function followSession(): void {
  reconnects.subscribe(() => void readSession());
}

async function readSession(): Promise<void> {
  if (!isLive()) return;
  let response: Response;
  try {
    response = await fetch("/api/session", { cache: "no-store" });
  } catch {
    lostConnection();
    return;
  }
  if (response.ok) {
    session.value = (await response.json()) as Session;
    connection.value = "up";
    return;
  }
  const error: ApiError = await readError(response);
  if (error.code === "UNAUTHENTICATED") connection.value = "refused";
  else lostConnection();
}

// What the server says against a token; "": it takes it.
export async function refusalOf(token: string): Promise<string> {
  if (!/^[\x21-\x7e]+$/.test(token)) return "This is no token: it has blanks or letters that no token has.";
  try {
    const response = await fetch("/api/session", { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
    return response.ok ? "" : (await readError(response)).message;
  } catch {
    return "The server does not answer.";
  }
}

export async function logOut(): Promise<void> {
  try {
    await fetch("/api/session", { method: "DELETE" });
  } catch {
    return lostConnection();
  }
  session.value = undefined;
  connection.value = "refused";
}
