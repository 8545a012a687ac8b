// The time, for ages such as "12 s ago": moves once a second while the page is seen and shows an age.
import { signal } from "@preact/signals";

let timer: ReturnType<typeof setInterval> | undefined;

export const now = signal(Date.now(), {
  watched() {
    this.value = Date.now();
    timer = setInterval(() => {
      if (!document.hidden) this.value = Date.now();
    }, 1000);
  },
  unwatched() {
    clearInterval(timer);
  },
});
