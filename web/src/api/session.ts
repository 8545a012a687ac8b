// Who uses the page, and what they may do.
import { computed, signal } from "@preact/signals";
import { ApiError, connection, isLive, lostConnection, readError } from "./call";

export interface Session {
  name: string;
  role: "read" | "work" | "write" | "admin";
  tls: boolean;
  version: string;
}

export const session = signal<Session | undefined>(undefined);

// The server decides by itself; this decides which controls are shown as usable.
export const mayWrite = computed(
  () => isLive() && (session.value?.role === "write" || session.value?.role === "admin"),
);
export const mayAdminister = computed(() => isLive() && session.value?.role === "admin");

export async function readSession(): Promise<void> {
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

export async function logOut(): Promise<void> {
  await fetch("/api/session", { method: "DELETE" });
  session.value = undefined;
  connection.value = "refused";
}
