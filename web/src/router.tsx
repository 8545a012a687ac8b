// The address bar: which page is shown, and the state that a link restores.
import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

interface Place {
  path: string;
  query: URLSearchParams;
}

// A page that is opened from disk has its places in the fragment: #/studies/criteria?where=...
let inFragment = false;

function here(): Place {
  if (!inFragment) return { path: location.pathname, query: new URLSearchParams(location.search) };
  // Links within the page, such as #content, lead nowhere else.
  if (!location.hash.startsWith("#/")) return place.value;
  const [path = "/", ...query] = location.hash.slice(1).split("?");
  return { path, query: new URLSearchParams(query.join("?")) };
}

// What a link has for a place of the page.
function written(address: string): string {
  return inFragment ? `#${address}` : address;
}

// Called once, before anything is shown. `first`: the place where the address names none.
export function placeInFragment(first: string): void {
  inFragment = true;
  if (!location.hash.startsWith("#/")) history.replaceState(null, "", written(first));
  place.value = here();
  addEventListener("hashchange", () => {
    place.value = here();
  });
}

export const place = signal<Place>(here());
export const path = computed(() => place.value.path);

addEventListener("popstate", () => {
  place.value = here();
});

export function go(address: string): void {
  history.pushState(null, "", written(address));
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
  history.replaceState(null, "", written(text === "" ? place.value.path : `${place.value.path}?${text}`));
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
      href={written(to)}
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
