// The address bar: which page is shown, and the state that a link restores.
import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

interface Place {
  path: string;
  query: URLSearchParams;
}

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>(here());
export const path = computed(() => place.value.path);

addEventListener("popstate", () => {
  place.value = here();
});

export function go(address: string): void {
  history.pushState(null, "", address);
  place.value = here();
  scrollTo(0, 0);
  document.getElementById("content")?.focus({ preventScroll: true });
}

// A word of the query; "" where it is not there.
export function queryWord(name: string): string {
  return place.value.query.get(name) ?? "";
}

export function queryWords(name: string): string[] {
  return place.value.query.getAll(name);
}

// Changes words of the query, without a new entry of the browser's history. An empty word, or an
// empty list, removes it.
export function setQuery(words: Record<string, string | string[]>): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(words)) {
    query.delete(name);
    for (const word of [value].flat()) if (word !== "") query.append(name, word);
  }
  const text = query.toString();
  history.replaceState(null, "", text === "" ? place.value.path : `${place.value.path}?${text}`);
  place.value = here();
}

export function studyPath(study: string, ...below: (string | number)[]): string {
  return ["/studies", encodeURIComponent(study), ...below.map((part) => encodeURIComponent(part))].join("/");
}

export interface LinkProps {
  to: string;
  class?: string;
  title?: string;
  current?: boolean;
  children?: ComponentChildren;
}

// A link within the page; with a modifier key or another button it is an ordinary one.
export function Link({ to, current, children, ...rest }: LinkProps) {
  return (
    <a
      {...rest}
      href={to}
      aria-current={current ? "page" : undefined}
      onClick={(event) => {
        const plain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
        if (event.button !== 0 || !plain) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}
