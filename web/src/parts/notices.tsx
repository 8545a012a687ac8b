// Messages about what the reader just did; over an open dialog they are a part of it, since it hides the rest.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { dismiss, notices } from "../state/notices";

const dialogs = signal(0);

export function Notices({ within = "page" }: { within?: "page" | "dialog" }) {
  useEffect(() => {
    if (within === "page") return;
    dialogs.value += 1;
    return () => {
      dialogs.value -= 1;
    };
  }, []);
  if (within === "page" && dialogs.value > 0) return null;
  return (
    <div class={`notices ${within}`} aria-live="polite">
      {notices.value.map((notice) => (
        <div key={notice.id} class={`notice ${notice.kind}`} role={notice.kind === "error" ? "alert" : undefined}>
          <span>{notice.text}</span>
          <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(notice.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
