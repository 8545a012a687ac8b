// The time, for ages such as "12 s ago": moves once a second while the page is seen.
import { signal } from "@preact/signals";

export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
