// Short messages about what the reader just did.
import { signal } from "@preact/signals";
import type { ApiError } from "../api/call";

export interface Notice {
  id: number;
  text: string;
  kind: "done" | "error";
}

export const notices = signal<Notice[]>([]);

const SHOWN_MS = 8000;
let last = 0;

export function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

export function notify(text: string, kind: Notice["kind"] = "done"): void {
  last += 1;
  const id = last;
  notices.value = [...notices.value, { id, text, kind }];
  // An error stays until it is dismissed.
  if (kind === "done") setTimeout(() => dismiss(id), SHOWN_MS);
}

// Runs an action of the reader's and says how it ended. Returns undefined where it failed.
export async function perform<T>(action: Promise<T>, done: (answer: T) => string): Promise<T | undefined> {
  try {
    const answer = await action;
    notify(done(answer));
    return answer;
  } catch (error) {
    notify((error as ApiError).message, "error");
    return undefined;
  }
}
